;; rl_start tells which instance it is: index 2 of 3, called guest[2], in a synchronous run of seed 7.
;; include imports
;; include memory
;; include marker
;; include alloc
;; include check
;; include configure
;; include manifest
;; include slot
(data (i32.const 0x3430) "guest[2]")
(func (export "rl_start") (param $id i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (i32.load (local.get $id)) (i32.const 48))
  (call $same (i32.const 2) (i32.load offset=4 (local.get $id)) (i32.const 2))
  (call $same (i32.const 3) (i32.load offset=8 (local.get $id)) (i32.const 3))
  (call $same (i32.const 4) (i32.load offset=12 (local.get $id)) (i32.const 1))
  (call $same64 (i32.const 5) (i64.load offset=16 (local.get $id)) (i64.const 7))
  (call $same (i32.const 6) (i32.load offset=28 (local.get $id)) (i32.const 8))
  (call $same (i32.const 7) (i32.add (i32.load offset=24 (local.get $id)) (i32.const 8)) (local.get $len))
  (call $same64 (i32.const 8) (i64.load (i32.add (local.get $id) (i32.load offset=24 (local.get $id)))) (i64.load (i32.const 0x3430)))
  (call $same64 (i32.const 9) (i64.load offset=32 (local.get $id)) (i64.const 0))
  (i32.const 0))
