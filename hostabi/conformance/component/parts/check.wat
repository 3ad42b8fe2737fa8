;; same traps unless a number is as it should be; rl_last_error then says which check it was.
(func $same (param $number i32) (param $got i32) (param $want i32)
  (if (i32.ne (local.get $got) (local.get $want))
    (then (global.set $check (local.get $number)) (unreachable))))
(func $same64 (param $number i32) (param $got i64) (param $want i64)
  (call $same (local.get $number) (i64.eq (local.get $got) (local.get $want)) (i32.const 1)))
(func (export "rl_last_error") (param $buf i32) (param $cap i32) (result i32)
  (i32.store8 (i32.const 0x3426) (i32.add (i32.const 48) (i32.div_u (global.get $check) (i32.const 10))))
  (i32.store8 (i32.const 0x3427) (i32.add (i32.const 48) (i32.rem_u (global.get $check) (i32.const 10))))
  (memory.copy (local.get $buf) (i32.const 0x3420) (i32.const 8))
  (i32.const 8))

;; note emits a number on the signal note, and returns the outcome.
(func $note (param $number i64) (result i32)
  (memory.fill (i32.const 0x3000) (i32.const 0) (i32.const 64))
  (i64.store offset=24 (i32.const 0x3000) (local.get $number))
  (call $emit (i32.const 1) (i32.const 0x3000)))
