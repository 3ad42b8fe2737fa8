;; A line goes to the host's log, if its level is wanted.
;; include granted
;; include guest
(data (i32.const 0x3430) "a line of a guest")(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $token i32) (local $at i32)
  (local.set $token (i32.load (local.get $message)))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $log (i32.const 2) (i32.const 0x3430) (i32.const 17))
  (call $same (i32.const 1) (call $log_enabled (i32.const 3)) (i32.const 1))
  (call $same (i32.const 2) (call $log_enabled (i32.const 0)) (i32.const 0))
  (call $log (i32.const 2) (i32.const -4) (i32.const 17)) ;; outside of memory: nothing
  (i32.const 0))
