;; Discrete actions are of i32: other types wait for a feature.
;; include guest
(data (i32.const 0x486) "\05") ;; dtype
