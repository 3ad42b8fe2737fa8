;; A reward of two elements.
;; include guest
(data (i32.const 0x587) "\01") ;; rank
(data (i32.const 0x58c) "\02\00\00\00") ;; shape
