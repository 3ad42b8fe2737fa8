;; Choices of a float type.
;; include guest
(data (i32.const 0x486) "\08") ;; dtype
