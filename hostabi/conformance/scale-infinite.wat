;; A scale that is infinite.
;; include guest
(data (i32.const 0x53c) "\00\00\80\7f") ;; scale
