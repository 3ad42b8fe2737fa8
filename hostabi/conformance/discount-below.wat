;; A discount below 0.
;; include role_observe
(func $more (param $t i32) (param $env i32)
  (f32.store (call $place (i32.const 6) (local.get $t) (local.get $env)) (f32.const -0.5)))
(data (i32.const 0x420) "\07")
(data (i32.const 0x780) "\0c\00\00\00\00\00\08\00\02\00\00\00")
(data (i32.const 0x410) "\20") ;; needs discount
