;; Observations with paths are a Dict: a Box of f32, a Discrete one of i32 from -1 on and a list of u8 with a scale; each has a last observation.
;; include dict
(global $gold i32 (i32.const 8))
(global $map i32 (i32.const 9))
(data (i32.const 0x880) "\07\00\01\00\00\00\04\00\08\00\00\00")
(data (i32.const 0x8ac) "\08\00\00\00\ff\ff\ff\ff")
(data (i32.const 0x8b8) "\01") (data (i32.const 0x8c0) "\18")
(data (i32.const 0x900) "\07\00\02\00\00\00\01\01\08\00\00\00\02\00\00\00")
(data (i32.const 0x928) "\00\00\7f\43")
(data (i32.const 0x938) "\02\00\00\00" "\81\80\80\3b" "\27")
