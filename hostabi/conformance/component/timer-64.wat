;; At most 64 timers at once; times from 0 up.
;; include guest
(func (export "rl_timer") (param $timer i32) (result i32)

  (i32.const 0))
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (call $timer (i64.const -1) (i64.const 0)) (i32.const -1))
  (call $same (i32.const 2) (call $timer (i64.const 0) (i64.const -1)) (i32.const -1))
  (loop $each
    (call $same (i32.const 3) (i32.gt_s (call $timer (i64.const 0x7fffffffffffffff) (i64.const 0)) (i32.const 0)) (i32.const 1))
    (br_if $each (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 64))))
  (call $same (i32.const 4) (call $timer (i64.const 1) (i64.const 0)) (i32.const -2))
  (i32.const 0))
