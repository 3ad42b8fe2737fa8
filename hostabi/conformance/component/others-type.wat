;; An unknown type of an argument of a question.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (unreachable))
(data (i32.const 0x5c4) "b")
