;; Reset parameters that nobody gives are NaN.
;; include role
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env))
  (if (i32.load (call $state (local.get $env))) (then (return))) ;; no episode begins
  (if (f32.eq (f32.load (call $place (i32.const 6) (i32.const 0) (local.get $env))) (f32.load (call $place (i32.const 6) (i32.const 0) (local.get $env))))
    (then unreachable)))
(func $more (param $t i32) (param $env i32))
(data (i32.const 0x410) "\80") ;; needs reset_param
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\0e\00\00\00\00\00\08\01\08\00\00\00\02\00\00\00")
(data (i32.const 0x7a4) "\00\00\00\00\00\00\20\41")
(data (i32.const 0x7c0) "\0f") ;; "wind"
(data (i32.const 0xc0f) "wind\00")
