;; Two tensors of a role that there is one of.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\03\00\01\00\00\00\08\00\02\00\00\00")
