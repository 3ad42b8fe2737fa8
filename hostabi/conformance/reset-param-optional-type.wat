;; A reset parameter of another type that is optional is not bound.
;; include guest
(data (i32.const 0x420) "\07\00\00\00")
(data (i32.const 0x780) "\0e\00") ;; role
(data (i32.const 0x786) "\04") ;; dtype
(data (i32.const 0x788) "\18\00\00\00") ;; flags
