;; A tensor of an unknown role that is critical: refused, by name.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\08\00\22\00\00\00")
