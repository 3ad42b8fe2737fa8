;; A component may ask while it gets an answer.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (call $shown (local.get $answer))
  (if (i32.eq (global.get $asked) (i32.load offset=4 (local.get $answer)))
    (then (if (i32.lt_u (global.get $messages) (i32.const 3))
      (then (global.set $messages (i32.add (global.get $messages) (i32.const 1))) (drop (call $total))))))
  (i32.const 0))
