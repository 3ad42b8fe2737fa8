;; include configure
;; include start
;; The slot asks one question.
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 30) (i32.gt_s (call $total) (i32.const 0)) (i32.const 1))
  (i32.const 0))
