;; A mask shorter than its action has values.
;; include guest
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\06\00\00\00\00\00\01\00\04\00\00\00")
