;; A need that the host does not know: refused as what it does not run yet, not as a mistake.
;; include guest
(data (i32.const 0x417) "\80") ;; feature 63
