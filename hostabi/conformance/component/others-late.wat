;; A question without an answer in its time comes back as late.
;; include asker
;; include configure
;; include start
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (global.set $asked (call $ask (i32.const 1) (i32.const 0) (i32.const 0) (i64.const 1000000)))
  (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (call $same (i32.const 1) (i32.load offset=8 (local.get $answer)) (i32.const 1))
  (drop (call $note (i64.extend_i32_u (i32.load offset=12 (local.get $answer)))))
  (i32.const 0))
