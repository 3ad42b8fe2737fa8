;; Names of columns make no wrapper: blocks of trajectories have no state and no wrapper_state.
;; include guest
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $at i32)
  (if (local.get $slot) (then (return (i32.const 0))))
  (local.set $at (i32.load offset=4 (local.get $message)))
  (call $same (i32.const 1) (i32.load offset=64 (local.get $at)) (i32.const 0))
  (call $same (i32.const 2) (i32.load offset=128 (local.get $at)) (i32.const 0))
  (drop (call $emit (i32.const 0) (local.get $message)))
  (i32.const 0))
(data (i32.const 0x56c) "\e0\00\00\00\02")
(data (i32.const 0x584) "\e8\00\00\00\02")
(data (i32.const 0x690) "state\00\00\00wrapper_state")
