;; Two masks of one action.
;; include guest
(data (i32.const 0x420) "\08")
(data (i32.const 0x780) "\06\00\00\00\00\00\01\01\04\00\00\00\02\00\00\00")
(data (i32.const 0x800) "\06\00\01\00\00\00\01\01\04\00\00\00\02\00\00\00")
(data (i32.const 0x840) "\01")
