;; The last state of an episode. A host that does not run it refuses the guest by the role's name, also where it need not bind the state.
;; include role_state
(func $more (param $t i32) (param $env i32))
(data (i32.const 0x420) "\08")
(data (i32.const 0x780) "\0a\00\00\00\00\00\08\01\d4\00\00\00\02\00\00\00") ;; optional
(data (i32.const 0x800) "\0b\00\00\00\00\00\08\01\c8\00\00\00\02\00\00\00")
