;; More than 256 questions.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (unreachable))
(data (i32.const 0x448) "\01\01")
