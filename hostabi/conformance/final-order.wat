;; Last observations stand in another order than their observations: pair says which is whose.
;; include dict
(global $gold i32 (i32.const 9))
(global $map i32 (i32.const 8))
(data (i32.const 0x900) "\07\00\02\00\00\00\04\00\08\00\00\00")
(data (i32.const 0x92c) "\08\00\00\00\ff\ff\ff\ff")
(data (i32.const 0x938) "\01") (data (i32.const 0x940) "\18")
(data (i32.const 0x880) "\07\00\01\00\00\00\01\01\08\00\00\00\02\00\00\00")
(data (i32.const 0x8a8) "\00\00\7f\43")
(data (i32.const 0x8b8) "\02\00\00\00" "\81\80\80\3b" "\27")
