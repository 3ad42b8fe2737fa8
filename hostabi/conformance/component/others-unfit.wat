;; Arguments that do not fit are the fault of the question.
;; include asker
;; include configure
;; include start
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (call $same (i32.const 1) (i32.gt_s (call $ask (i32.const 0) (i32.const 0x3440) (i32.const 7) (i64.const 0)) (i32.const 0)) (i32.const 1))
  (call $same (i32.const 2) (i32.gt_s (call $ask (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0)) (i32.const 0)) (i32.const 1))
  (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (drop (call $note (i64.extend_i32_u (i32.load offset=12 (local.get $answer)))))
  (i32.const 0))
