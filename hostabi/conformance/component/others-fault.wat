;; A question that fails comes back with the number of its code, and the type, text and place of the other component's error.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32)
  (drop (call $note (i64.extend_i32_u (i32.load offset=12 (local.get $answer)))))
  (call $shown (local.get $answer))
  (call $same (i32.const 1) (i32.load8_u (i32.add (local.get $answer) (i32.load offset=24 (local.get $answer)))) (i32.const 86))
  (call $same (i32.const 2) (i32.load offset=28 (local.get $answer)) (i32.const 10))
  (call $same (i32.const 3) (i32.load8_u (i32.add (local.get $answer) (i32.load offset=32 (local.get $answer)))) (i32.const 99))
  (call $same (i32.const 4) (i32.load offset=36 (local.get $answer)) (i32.const 10))
  (i32.const 0))
