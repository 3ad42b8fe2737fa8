;; An index that does not count up from 0, of a role that no other refers to.
;; include guest
(data (i32.const 0x420) "\07\00\00\00")
(data (i32.const 0x780) "\09\00") ;; role
(data (i32.const 0x786) "\08") ;; dtype
(data (i32.const 0x788) "\02\00\00\00") ;; flags
(data (i32.const 0x782) "\01\00") ;; index
