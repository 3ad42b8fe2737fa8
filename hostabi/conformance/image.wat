;; A picture of u8 is dense within a row: its elements are one byte apart.
;; include memory
;; include describe
;; include alloc
;; include create
;; include reset
;; include place
;; include advance
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (memory.fill (call $place (local.get $k) (local.get $t) (local.get $env)) (i32.load (call $state (local.get $env))) (i32.const 24)))
;; include loop

(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (if (i32.ne (i32.load (i32.const 0x2040)) (i32.const 1)) (then (return (i32.const -1))))
  (i32.const 0))

(data (i32.const 0x408) "\01") ;; any strides
(data (i32.const 0x506) "\01\03\04\01\00\00\02\00\00\00\04\00\00\00\03\00\00\00") ;; u8[2][4][3], HWC, at t+1
(data (i32.const 0x528) "\00\00\7f\43")
(data (i32.const 0x706) "\01\03\08\01\00\00\02\00\00\00\04\00\00\00\03\00\00\00")
(data (i32.const 0x728) "\00\00\7f\43")
