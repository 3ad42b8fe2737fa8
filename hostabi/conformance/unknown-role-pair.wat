;; A tensor of a role that version 1 does not have may have a pair, as a later version may say.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\08\00\02\00\00\00")
(data (i32.const 0x7b8) "\03")
