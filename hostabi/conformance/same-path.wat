;; Two observations with the same path.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\02\00\01\00\00\00\08\01\c4\00\00\00\02\00\00\00")
