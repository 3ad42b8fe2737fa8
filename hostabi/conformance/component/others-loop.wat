;; An rl_answer that does not return is ended as any other call.
;; include asker
;; include asksone
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (loop $more (br $more)) (i32.const 0))
