;; Where both flags are set terminated counts: of two ends of one step the host takes that one.
;; include frame
;; include place
;; include observe
;; include advance
;; include loop_more
(func $more (param $t i32) (param $env i32)
  (i32.store8 (call $place (i32.const 4) (local.get $t) (local.get $env))
    (i32.or (i32.load8_u (call $place (i32.const 4) (local.get $t) (local.get $env))) (i32.load8_u (call $place (i32.const 3) (local.get $t) (local.get $env))))))
