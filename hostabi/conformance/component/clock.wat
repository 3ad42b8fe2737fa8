;; The clock goes on by a millisecond with each message.
;; include granted
;; include guest
(global $last (mut i64) (i64.const -1))(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $now i64) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (local.set $now (call $clock_ns))
  (if (i64.ge_s (global.get $last) (i64.const 0))
    (then (call $same64 (i32.const 1) (i64.sub (local.get $now) (global.get $last)) (i64.const 1000000))))
  (call $same64 (i32.const 2) (call $clock_ns) (local.get $now))
  (global.set $last (local.get $now))
  (i32.const 0))
