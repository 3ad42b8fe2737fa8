;; A positive status of rl_answer is a fault.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (i32.const 1))
