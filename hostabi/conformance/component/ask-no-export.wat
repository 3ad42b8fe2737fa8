;; Requests need rl_request.
;; include asking
