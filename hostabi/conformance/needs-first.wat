;; A need that the host does not know stands beside a reserved byte that is not 0: the needs are read first, so that the host says that it is too old.
;; include guest
(data (i32.const 0x417) "\80") ;; feature 63
(data (i32.const 0x478) "\01") ;; reserved
