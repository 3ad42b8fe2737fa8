;; At most 256 questions have no answer yet.
;; include asker
;; include configure
;; include start
(func (export "rl_slot") (param $slot i32) (param $message i32) (result i32)
  (local $n i32)
  (loop $more
    (call $same (i32.const 1) (i32.gt_s (call $total) (i32.const 0)) (i32.const 1))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $more (i32.lt_u (local.get $n) (i32.const 256))))
  (call $same (i32.const 2) (call $total) (i32.const -2))
  (drop (call $note (i64.const 6)))
  (i32.const 0))
(func (export "rl_answer") (param $answer i32) (param $len i32) (result i32) (unreachable))
