;; A fault in rl_answer costs the answer: the guest continues from its saved state, which does not know the question.
;; include asker
;; include configure
;; include start
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (drop (call $note (i64.extend_i32_u (global.get $messages))))
  (global.set $messages (i32.add (global.get $messages) (i32.const 1)))
  (call $same (i32.const 1) (i32.gt_s (call $total) (i32.const 0)) (i32.const 1))
  (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (call $same (i32.const 42) (i32.load offset=12 (local.get $answer)) (i32.const 0))
  (call $shown (local.get $answer))
  (i32.const 0))
