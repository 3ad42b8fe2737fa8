;; A size of bindings that is no multiple of 8.
;; include guest
;; include slot
(data (i32.const 0x416) "\44")
