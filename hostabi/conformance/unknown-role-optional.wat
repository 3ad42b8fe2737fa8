;; A tensor of an unknown role that is optional is not bound: its ptr is 0.
;; include memory
;; include describe
;; include alloc
;; include create
;; include reset
;; include step

(func (export "rl_bind") (param $batch i32) (param $bindings i32) (param $n i32) (result i32)
  (memory.copy (i32.const 0x2000) (local.get $bindings) (i32.mul (local.get $n) (i32.const 48)))
  (if (i32.load (i32.const 0x2120)) (then (return (i32.const -1))))
  (i32.const 0))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\84\03\00\00\00\00\08\00\12\00\00\00")
