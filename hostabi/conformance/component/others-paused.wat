;; A component that is paused gets no answer before it is resumed.
;; include asker
;; include asksone
(global $paused (mut i32) (i32.const 0))
(func (export "rl_pause") (result i32) (global.set $paused (i32.const 1)) (i32.const 0))
(func (export "rl_resume") (result i32) (global.set $paused (i32.const 0)) (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (global.get $paused) (i32.const 0))
  (call $shown (local.get $answer))
  (i32.const 0))
