;; An info has one way to gather.
;; include guest
(data (i32.const 0x420) "\07\00\00\00")
(data (i32.const 0x780) "\09\00") ;; role
(data (i32.const 0x786) "\08") ;; dtype
(data (i32.const 0x788) "\02\00\00\00") ;; flags
(data (i32.const 0x788) "\02\60\00\00") ;; flags
