;; The guest of role whose observation is that of every other.
;; include role
(func $observe (param $k i32) (param $t i32) (param $env i32)
  (call $vector (local.get $k) (local.get $t) (local.get $env)))
