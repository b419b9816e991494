// Generated from openapi.json by npm run generate. Do not edit.

export interface paths {
    "/v1/data/customers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List customers
         * @description Returns customers in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-customers"];
        put?: never;
        /**
         * Upload customers
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `customer_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:customers`.
         */
        post: operations["upload-customers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List transactions
         * @description Returns transactions in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-transactions"];
        put?: never;
        /**
         * Upload transactions
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `transaction_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:transactions`.
         */
        post: operations["upload-transactions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/offers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List offers
         * @description Returns offers in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-offers"];
        put?: never;
        /**
         * Upload offers
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `offer_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:offers`.
         */
        post: operations["upload-offers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List shops
         * @description Returns shops in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-shops"];
        put?: never;
        /**
         * Upload shops
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `shop_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:shops`.
         */
        post: operations["upload-shops"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/branches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List branches
         * @description Returns branches in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-branches"];
        put?: never;
        /**
         * Upload branches
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `branch_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:branches`.
         */
        post: operations["upload-branches"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/categories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List categories
         * @description Returns categories in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-categories"];
        put?: never;
        /**
         * Upload categories
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `category_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:categories`.
         */
        post: operations["upload-categories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-categories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List shop categories
         * @description Returns shop categories in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-shop-categories"];
        put?: never;
        /**
         * Upload shop categories
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `shop_category_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`), `category_id` (`categories`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:shop-categories`.
         */
        post: operations["upload-shop-categories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/institutes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List institutes
         * @description Returns institutes in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-institutes"];
        put?: never;
        /**
         * Upload institutes
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `institute_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:institutes`.
         */
        post: operations["upload-institutes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/courses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List courses
         * @description Returns courses in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-courses"];
        put?: never;
        /**
         * Upload courses
         * @description Stores up to 1,000 records. A valid record replaces the stored one with the same `course_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:courses`.
         */
        post: operations["upload-courses"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/tags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tags
         * @description Returns tags in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-tags"];
        put?: never;
        /**
         * Upload tags
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `tag_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:tags`.
         */
        post: operations["upload-tags"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-tags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List shop tags
         * @description Returns shop tags in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-shop-tags"];
        put?: never;
        /**
         * Upload shop tags
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `shop_tag_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`), `tag_id` (`tags`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:shop-tags`.
         */
        post: operations["upload-shop-tags"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/keywords": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List keywords
         * @description Returns keywords in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-keywords"];
        put?: never;
        /**
         * Upload keywords
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `keyword_id` as a whole or, with `mode=merge`, the fields that it has. Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:keywords`.
         */
        post: operations["upload-keywords"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-keywords": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List shop keywords
         * @description Returns shop keywords in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-shop-keywords"];
        put?: never;
        /**
         * Upload shop keywords
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `shop_keyword_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `shop_id` (`shops`), `keyword_id` (`keywords`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:shop-keywords`.
         */
        post: operations["upload-shop-keywords"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/student-favourites": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List student favourites
         * @description Returns student favourites in the order of their ids, in pages or, with `Accept: application/x-ndjson`, all in one answer.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-student-favourites"];
        put?: never;
        /**
         * Upload student favourites
         * @description Stores up to 5,000 records. A valid record replaces the stored one with the same `student_favourite_id` as a whole or, with `mode=merge`, the fields that it has. The records they refer to must exist: `student_id` (`customers`), `shop_id` (`shops`). Sending the same again changes nothing.
         *
         *     The records may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Needs the permission `data:write:student-favourites`.
         */
        post: operations["upload-student-favourites"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an overview
         * @description Returns for each type how many records the organisation has, the newest `updated` ever stored, the time of the last upload, and how many rejections are open. Interactions are included; their last upload is when the last interaction was received, alone or in a batch. Types that were never uploaded are omitted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/customers/{customer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a customer
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-customers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/transactions/{transaction_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a transaction
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-transactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/offers/{offer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an offer
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-offers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shops/{shop_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a shop
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-shops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/branches/{branch_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a branch
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-branches"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/categories/{category_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a category
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-categories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-categories/{shop_category_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a shop category
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-shop-categories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/institutes/{institute_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an institute
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-institutes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/courses/{course_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a course
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-courses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/tags/{tag_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-tags"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-tags/{shop_tag_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a shop tag
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-shop-tags"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/keywords/{keyword_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a keyword
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-keywords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/shop-keywords/{shop_keyword_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a shop keyword
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-shop-keywords"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/data/student-favourites/{student_favourite_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a student favourite
         * @description Returns one stored record, even if it is marked as deleted.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-student-favourites"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read changes
         * @description Returns created and changed records in order, each in its current version. Send `next_cursor` as `after` for the next changes; while `has_more` is true, more may be available immediately. A record that was changed several times may appear several times. An entry with `expired_before` reports that all records of its type that were received before that time have expired: remove them. With `Accept: application/x-ndjson` the answer is a stream: a line per change as it is stored, and every 10 seconds without one a line with the `cursor` alone. It ends after 10 minutes; continue with the cursor of the last complete line. Changes are kept for a week, or as long as the operator has set; an older cursor gets 410. Changes of interactions also need the permission `interactions:read`; without it, list the other `types`.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List receipts
         * @description Returns a page of receipts, the newest first: send `next_cursor` as `cursor` until it is null.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/daily": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count uploads by day
         * @description Returns for each of the last days, in UTC and the newest first, how many uploads there were, and the outcomes of their records.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["count-requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/requests/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the receipt of an upload
         * @description Returns the answer to an upload, with its time, key and duration. A receipt is committed together with its records: if there is none, nothing was stored. Receipts are kept for a time that the operator sets, default 30 days.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-request"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs
         * @description Returns a page of runs, the newest first: send `next_cursor` as `cursor` until it is null.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-runs"];
        put?: never;
        /**
         * Open a run
         * @description A run is one upload of one or several files. Requests that upload their records name it with `run_id`, `file` and `first_record`, and their receipts show that. Send an `Idempotency-Key`: opening a run again with the same key and the same body returns the same run with 200. A file of interactions that was uploaded in the last 400 days is refused, unless `again` is true. A key that may only upload some types can use it for runs with files of these types.
         *
         *     Needs the permission `data:write`.
         */
        post: operations["open-run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Show that a run is still running
         * @description For a client that sends no requests for some time, for example because it waits for another file. Once a minute is enough. A key that may only upload some types can use it for runs with files of these types.
         *
         *     Needs the permission `data:write`.
         */
        post: operations["note-heartbeat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}/end": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End a run
         * @description Ends a run as `finished` or `failed`, with what the client counted and the service did not see. Requests of a run that has ended are refused. Do not end a run that will be continued: without requests it becomes `interrupted`, and the next request continues it. A failed run releases its files of interactions of which nothing was stored, so that another run can upload them. Ending it again with the same body returns the same answer. A key that may only upload some types can use it for runs with files of these types.
         *
         *     Needs the permission `data:write`.
         */
        post: operations["end-run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/runs/{run_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a run
         * @description Returns a run with its files. All counts are sums of its receipts. `reasons` covers the failed records that are still kept as rejections, up to the first 500,000. Runs are kept as long as receipts.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rejections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List rejections
         * @description Returns failed records that are kept, the oldest first, each with its errors. A rejection is removed when its replay succeeds, when it is discarded, or when an upload stores a record with its id.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-rejections"];
        put?: never;
        post?: never;
        /**
         * Discard rejections
         * @description Deletes the rejections that match; without a filter, all of them. A call takes about 30 seconds at most; if `has_more` is true, send the same request again for the rest.
         *
         *     Needs the permission `data:write`.
         */
        delete: operations["discard-rejections"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rejections/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Summarise rejections
         * @description Counts rejections by type, code and field, with the first and last time of each and an example.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["summarise-rejections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rejections/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay rejections
         * @description Validates rejections again, for example once the records they refer to are uploaded. Those that pass are stored and removed from the rejections; the others stay with their new errors. A call replays up to 50,000 records, the oldest first; `remaining` says how many that match are left. If there are more, send `next_cursor` as `cursor`, with the same filters, until it is null: then each has been tried.
         *
         *     Needs the permission `data:write`.
         */
        post: operations["replay-rejections"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user-interactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List interactions
         * @description Returns a page of interactions, the newest received first: send `next_cursor` as `cursor` until it is null. Filters can be combined. If few match, a search ends after a second with the results so far, if any; `next_cursor` continues it. With `Accept: application/x-ndjson` all that match come in one answer.
         *
         *     Needs the permission `interactions:read`.
         */
        get: operations["list-interactions"];
        put?: never;
        /**
         * Record an interaction
         * @description Records one interaction of a user with an item. The item must exist, and so must the student if there is one. With an `Idempotency-Key` a retry is safe: the same body repeats the first answer.
         *
         *     Pages of other origins may send it with a browser key. The answer is then 202 and depends on the body alone, never on what is stored. OPTIONS answers preflights, for any origin.
         *
         *     Needs the permission `interactions:write`.
         */
        post: operations["record-interaction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user-interactions/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Upload interactions
         * @description Stores up to 5,000 interactions. They are answered like an upload, with a receipt, and `interaction_ids` has the id of each in the order sent. An interaction that is invalid, or whose item or student does not exist, is kept as a rejection. Send an `Idempotency-Key`: an interaction has no id before it is stored, so without a key a retry stores it a second time. The interactions of a batch count towards the limit of interactions per second, and the batch does not count as a request.
         *
         *     The interactions may also be sent one per line, with nothing around them and with `Content-Type: application/x-ndjson`.
         *
         *     Pages of other origins may send it with a browser key. The answer is then 202 and depends on the body alone, never on what is stored. OPTIONS answers preflights, for any origin. A batch has at most 1,000 interactions, and invalid ones are not kept.
         *
         *     Needs the permission `interactions:write`.
         */
        post: operations["upload-interactions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user-interactions/{interaction_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an interaction
         * @description Returns one interaction.
         *
         *     Needs the permission `interactions:read`.
         */
        get: operations["get-interaction"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/reports/recommendations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Report what recommendations earn
         * @description Returns, for a range of days and for each group, how often students followed recommendations, their discount codes, and the transactions that are credited to the last touch within the window, next to the same figures for browsing. Days are UTC, by `event_time` and `created`; the range is 366 days at most. Changes count within a minute, late data and deletions included; everything stored before `as_of` is counted. The figures are correlation, not cause.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["report-recommendations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the tables of the lake
         * @description Returns each table with its newest version. `following`: everything stored before `as_of` is in it; `copying`: data from the database is still being copied, and the tables are incomplete; `off`: the organisation has no lake, and `notice` says what to do. `intake pull` copies the tables to a folder, where DuckDB, pandas and Polars read them.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["get-lake"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lake/{table}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the files of a table
         * @description Returns the files of the newest version in the order of their ids, and what a Delta Lake log needs to describe them. All pages are from one version: if the table changes in the meantime, the next page gets 410, and you have to start again. The table `interactions` also needs the permission `interactions:read`.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["list-lake-files"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/lake/{table}/files/{file_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a file of a table
         * @description Returns a Parquet file or one range of its bytes. A file never changes, and its ETag is its id, so an interrupted download can continue with `Range`. Files are merged and deleted: 404 means that the list of files has changed. The table `interactions` also needs the permission `interactions:read`.
         *
         *     Needs the permission `data:read`.
         */
        get: operations["download-lake-file"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List erasures
         * @description Returns a page of erasures, the newest first: send `next_cursor` as `cursor` until it is null.
         *
         *     Needs the permission `data:erase`.
         */
        get: operations["list-erasures"];
        put?: never;
        /**
         * Erase people
         * @description Erases up to 5,000 people: customers by `customer_ids`, and people known from interactions alone by `user_ids`. When the answer arrives, nobody can read their data, and records that refer to them are refused with the code `erased`. With `anonymise`, transactions and interactions are kept without the person; with `delete`, they are deleted too. Customers and favourites are always deleted. A customer and its `user_id` are one person, and so are customers with the same `user_id`. An interaction belongs to its `student_id`, or to its `user_id` if it has no `student_id`; interactions of other students only lose an erased `user_id`.
         *
         *     Needs the permission `data:erase`.
         */
        post: operations["erase-people"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasures/{erasure_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an erasure
         * @description Returns the progress of an erasure. `pending`: the people are hidden; `running`: tables are being swept; `swept`: the ids are only in the last entries of the change feed; `done`: these entries were dropped too. `lake` is `pending` until the files of the lake have been rewritten, and then `done`.
         *
         *     Needs the permission `data:erase`.
         */
        get: operations["get-erasure"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasures/{erasure_id}/certificate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the certificate of an erasure
         * @description Returns what was removed, where and when, and what remains and until when, signed with Ed25519 as a JWS. With `Accept: text/html`, it is a readable page. The erasure must be swept.
         *
         *     Needs the permission `data:erase`.
         */
        get: operations["get-erasure-certificate"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasures/{erasure_id}/suppression": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Lift the suppression of erased people
         * @description Accepts records of the people of an erasure again, unless another erasure covers them. Erased data stays erased. The erasure must be swept, and `lake` must not be `pending`.
         *
         *     Needs the permission `data:erase`.
         */
        delete: operations["lift-suppression"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/erasure-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the keys that certificates are signed with
         * @description Returns the public keys, the newest first, as PEM. No key is needed to read them.
         */
        get: operations["list-erasure-keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access-requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List access requests
         * @description Returns a page, the newest first: send `next_cursor` as `cursor` until it is null.
         *
         *     Needs the permission `data:access`.
         */
        get: operations["list-access-requests"];
        put?: never;
        /**
         * Request what is stored about people
         * @description Collects everything that is stored about customers, by `customer_ids`, and about people known only from interactions, by `user_ids`. Request one person at a time, because the records do not show whose they are.
         *
         *     Needs the permission `data:access`.
         */
        post: operations["request-access"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access-requests/{access_request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an access request
         * @description Returns its progress. Without `records`, nothing was found.
         *
         *     Needs the permission `data:access`.
         */
        get: operations["get-access-request"];
        put?: never;
        post?: never;
        /**
         * Cancel an access request
         * @description Stops collecting, and deletes what was collected. The request stays in the list as `cancelled`. An expired request is returned unchanged.
         *
         *     Needs the permission `data:access`.
         */
        delete: operations["cancel-access-request"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/access-requests/{access_request_id}/records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download what was collected
         * @description Returns NDJSON, `{"type", "id", "record"}` on each line, until it expires, 7 days after it was done.
         *
         *     Needs the permission `data:access`.
         */
        get: operations["download-access-request"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Is the process alive?
         * @description Answers while the process is running, and does not query the database.
         */
        get: operations["health-live"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Can it serve?
         * @description Returns 200 if the database can be reached, has a schema that this version works with, writes succeed and survive a crash, and the process has every erasure key that is in use and a clock that agrees with the database's. Returns 503 if for 8 seconds no waiting upload or interaction has been stored or no connection has become free, or if writes of several organisations fail because of the database server. The answer arrives within 2 seconds and may be a second old, or a few seconds for clock, settings and erasure keys.
         */
        get: operations["health-ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Customer: {
            /**
             * Format: uuid
             * @description record identifier
             */
            customer_id: string;
            /**
             * Format: uuid
             * @description user identifier
             */
            user_id: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date
             * @description date of birth
             */
            birthdate?: string | null;
            /**
             * Format: uuid
             * @description educational institute; not checked for existence
             */
            institute_id?: string | null;
            /**
             * Format: uuid
             * @description course; not checked for existence
             */
            course_id?: string | null;
            /** @description free text */
            gender?: string | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        CustomerChanges: {
            /**
             * Format: uuid
             * @description record identifier
             */
            customer_id: string;
            /**
             * Format: uuid
             * @description user identifier
             */
            user_id?: string;
            /** @description 2-letter country code */
            region?: string;
            /**
             * Format: date
             * @description date of birth
             */
            birthdate?: string | null;
            /**
             * Format: uuid
             * @description educational institute; not checked for existence
             */
            institute_id?: string | null;
            /**
             * Format: uuid
             * @description course; not checked for existence
             */
            course_id?: string | null;
            /** @description free text */
            gender?: string | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "customer_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
         *       "user_id": "7b0e4c52-95d1-4a3e-8f26-6c1d9e0b3a42",
         *       "region": "GB",
         *       "birthdate": "2004-02-29",
         *       "institute_id": "1e9d8c7b-6a54-4f32-9b10-a8c7d6e5f401",
         *       "course_id": "2d8c7b6a-5f43-4e21-8a09-b7d6e5f4c302",
         *       "gender": "female",
         *       "created": null,
         *       "updated": "2026-03-14T09:26:53Z",
         *       "is_deleted": false
         *     }
         */
        StoredCustomer: {
            /**
             * Format: uuid
             * @description record identifier
             */
            customer_id: string;
            /**
             * Format: uuid
             * @description user identifier
             */
            user_id: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date
             * @description date of birth
             */
            birthdate: string | null;
            /**
             * Format: uuid
             * @description educational institute; not checked for existence
             */
            institute_id: string | null;
            /**
             * Format: uuid
             * @description course; not checked for existence
             */
            course_id: string | null;
            /** @description free text */
            gender: string | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        CustomerPage: {
            records: components["schemas"]["StoredCustomer"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Transaction: {
            /** Format: uuid */
            transaction_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /** @description 2-letter country code */
            region: string;
            /** @description what the student saved */
            savings: number;
            /** @description what the student paid */
            amount: number;
            /**
             * Format: uuid
             * @description purchasing student; not checked for existence
             */
            student_id?: string | null;
            /**
             * Format: uuid
             * @description offer used; not checked for existence
             */
            offer_id?: string | null;
            /**
             * Format: uuid
             * @description branch location; not checked for existence
             */
            branch_id?: string | null;
            /** @description origin, for example online or in-store */
            source?: string | null;
            discount_name?: string | null;
            /** @description for example percentage or fixed */
            discount_type?: string | null;
            discount_value?: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        TransactionChanges: {
            /** Format: uuid */
            transaction_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            /** @description 2-letter country code */
            region?: string;
            /** @description what the student saved */
            savings?: number;
            /** @description what the student paid */
            amount?: number;
            /**
             * Format: uuid
             * @description purchasing student; not checked for existence
             */
            student_id?: string | null;
            /**
             * Format: uuid
             * @description offer used; not checked for existence
             */
            offer_id?: string | null;
            /**
             * Format: uuid
             * @description branch location; not checked for existence
             */
            branch_id?: string | null;
            /** @description origin, for example online or in-store */
            source?: string | null;
            discount_name?: string | null;
            /** @description for example percentage or fixed */
            discount_type?: string | null;
            discount_value?: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "transaction_id": "e98e7d6c-5b43-4a21-8c09-5d86d5c4a312",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "region": "GB",
         *       "savings": 2.5,
         *       "amount": 22.49,
         *       "student_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
         *       "offer_id": "3c7b6a5f-4e32-4d10-9f98-c6e5f4d3b203",
         *       "branch_id": "4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104",
         *       "source": "in-store",
         *       "discount_name": "Student tenth",
         *       "discount_type": "percentage",
         *       "discount_value": 10,
         *       "created": "2026-03-14T09:26:53.589793Z",
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredTransaction: {
            /** Format: uuid */
            transaction_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /** @description 2-letter country code */
            region: string;
            /** @description what the student saved */
            savings: number;
            /** @description what the student paid */
            amount: number;
            /**
             * Format: uuid
             * @description purchasing student; not checked for existence
             */
            student_id: string | null;
            /**
             * Format: uuid
             * @description offer used; not checked for existence
             */
            offer_id: string | null;
            /**
             * Format: uuid
             * @description branch location; not checked for existence
             */
            branch_id: string | null;
            /** @description origin, for example online or in-store */
            source: string | null;
            discount_name: string | null;
            /** @description for example percentage or fixed */
            discount_type: string | null;
            discount_value: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        TransactionPage: {
            records: components["schemas"]["StoredTransaction"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Offer: {
            /** Format: uuid */
            offer_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            name: string;
            /** @description for example percentage or fixed */
            type: string;
            value: number;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description start of validity
             */
            allowed_from?: string | null;
            /**
             * Format: date-time
             * @description end of validity
             */
            allowed_to?: string | null;
            /** @description branch ids, separated by commas */
            allowed_branches?: string | null;
            /** @description names of days, separated by commas */
            allowed_days?: string | null;
            /** @description whether the offer is currently enabled */
            is_enabled?: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        OfferChanges: {
            /** Format: uuid */
            offer_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            name?: string;
            /** @description for example percentage or fixed */
            type?: string;
            value?: number;
            /** @description 2-letter country code */
            region?: string;
            /**
             * Format: date-time
             * @description start of validity
             */
            allowed_from?: string | null;
            /**
             * Format: date-time
             * @description end of validity
             */
            allowed_to?: string | null;
            /** @description branch ids, separated by commas */
            allowed_branches?: string | null;
            /** @description names of days, separated by commas */
            allowed_days?: string | null;
            /** @description whether the offer is currently enabled */
            is_enabled?: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "offer_id": "3c7b6a5f-4e32-4d10-9f98-c6e5f4d3b203",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "name": "Student tenth",
         *       "type": "percentage",
         *       "value": 10,
         *       "region": "GB",
         *       "allowed_from": "2026-01-01T00:00:00Z",
         *       "allowed_to": "2026-12-31T23:59:59Z",
         *       "allowed_branches": "4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104",
         *       "allowed_days": "Monday,Tuesday",
         *       "is_enabled": true,
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredOffer: {
            /** Format: uuid */
            offer_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            name: string;
            /** @description for example percentage or fixed */
            type: string;
            value: number;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description start of validity
             */
            allowed_from: string | null;
            /**
             * Format: date-time
             * @description end of validity
             */
            allowed_to: string | null;
            /** @description branch ids, separated by commas */
            allowed_branches: string | null;
            /** @description names of days, separated by commas */
            allowed_days: string | null;
            /** @description whether the offer is currently enabled */
            is_enabled: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        OfferPage: {
            records: components["schemas"]["StoredOffer"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Shop: {
            /** Format: uuid */
            shop_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            is_public?: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        ShopChanges: {
            /** Format: uuid */
            shop_id: string;
            name?: string;
            /** @description 2-letter country code */
            region?: string;
            is_public?: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "name": "Corner Bakery",
         *       "region": "GB",
         *       "is_public": true,
         *       "created": null,
         *       "updated": "2026-03-14T09:26:53Z",
         *       "is_deleted": false
         *     }
         */
        StoredShop: {
            /** Format: uuid */
            shop_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            is_public: boolean | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        ShopPage: {
            records: components["schemas"]["StoredShop"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Branch: {
            /** Format: uuid */
            branch_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /** @description degrees */
            latitude?: number | null;
            /** @description degrees */
            longitude?: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        BranchChanges: {
            /** Format: uuid */
            branch_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            name?: string;
            /** @description 2-letter country code */
            region?: string;
            /** @description degrees */
            latitude?: number | null;
            /** @description degrees */
            longitude?: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "branch_id": "4b6a5f4e-3d21-4c09-8e87-d5f4e3c2a104",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "name": "Corner Bakery, High Street",
         *       "region": "GB",
         *       "latitude": 51.5072,
         *       "longitude": -0.1276,
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredBranch: {
            /** Format: uuid */
            branch_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /** @description degrees */
            latitude: number | null;
            /** @description degrees */
            longitude: number | null;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        BranchPage: {
            records: components["schemas"]["StoredBranch"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Category: {
            /** Format: uuid */
            category_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        CategoryChanges: {
            /** Format: uuid */
            category_id: string;
            name?: string;
            /** @description 2-letter country code */
            region?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "category_id": "6a5f4e3d-2c10-4b98-9d76-e4f3d2c1b005",
         *       "name": "Food and drink",
         *       "region": "GB",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredCategory: {
            /** Format: uuid */
            category_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        CategoryPage: {
            records: components["schemas"]["StoredCategory"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        ShopCategory: {
            /** Format: uuid */
            shop_category_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `categories`
             */
            category_id: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        ShopCategoryChanges: {
            /** Format: uuid */
            shop_category_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `categories`
             */
            category_id?: string;
            /** @description 2-letter country code */
            region?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "shop_category_id": "8f4e3d2c-1b09-4a87-8c65-f3e2d1c0a906",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "category_id": "6a5f4e3d-2c10-4b98-9d76-e4f3d2c1b005",
         *       "region": "GB",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredShopCategory: {
            /** Format: uuid */
            shop_category_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `categories`
             */
            category_id: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        ShopCategoryPage: {
            records: components["schemas"]["StoredShopCategory"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Institute: {
            /** Format: uuid */
            institute_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        InstituteChanges: {
            /** Format: uuid */
            institute_id: string;
            name?: string;
            /** @description 2-letter country code */
            region?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "institute_id": "1e9d8c7b-6a54-4f32-9b10-a8c7d6e5f401",
         *       "name": "Northern Polytechnic",
         *       "region": "GB",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredInstitute: {
            /** Format: uuid */
            institute_id: string;
            name: string;
            /** @description 2-letter country code */
            region: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        InstitutePage: {
            records: components["schemas"]["StoredInstitute"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Course: {
            /** Format: uuid */
            course_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        CourseChanges: {
            /** Format: uuid */
            course_id: string;
            name?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "course_id": "2d8c7b6a-5f43-4e21-8a09-b7d6e5f4c302",
         *       "name": "Marine biology",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredCourse: {
            /** Format: uuid */
            course_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        CoursePage: {
            records: components["schemas"]["StoredCourse"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Tag: {
            /** Format: uuid */
            tag_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        TagChanges: {
            /** Format: uuid */
            tag_id: string;
            name?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "tag_id": "9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807",
         *       "name": "vegan",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredTag: {
            /** Format: uuid */
            tag_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        TagPage: {
            records: components["schemas"]["StoredTag"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        ShopTag: {
            /** Format: uuid */
            shop_tag_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `tags`
             */
            tag_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        ShopTagChanges: {
            /** Format: uuid */
            shop_tag_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `tags`
             */
            tag_id?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "shop_tag_id": "ad2c1b0a-9f87-4e65-8a43-11c0b9a8e708",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "tag_id": "9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredShopTag: {
            /** Format: uuid */
            shop_tag_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `tags`
             */
            tag_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        ShopTagPage: {
            records: components["schemas"]["StoredShopTag"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Keyword: {
            /** Format: uuid */
            keyword_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        KeywordChanges: {
            /** Format: uuid */
            keyword_id: string;
            name?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "keyword_id": "bc1b0a9f-8e76-4d54-9f32-20b9a8f7d609",
         *       "name": "sourdough",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredKeyword: {
            /** Format: uuid */
            keyword_id: string;
            name: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        KeywordPage: {
            records: components["schemas"]["StoredKeyword"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        ShopKeyword: {
            /** Format: uuid */
            shop_keyword_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `keywords`
             */
            keyword_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        ShopKeywordChanges: {
            /** Format: uuid */
            shop_keyword_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `keywords`
             */
            keyword_id?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "shop_keyword_id": "cb0a9f8e-7d65-4c43-8e21-3fa8f7e6c510",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "keyword_id": "bc1b0a9f-8e76-4d54-9f32-20b9a8f7d609",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredShopKeyword: {
            /** Format: uuid */
            shop_keyword_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `keywords`
             */
            keyword_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        ShopKeywordPage: {
            records: components["schemas"]["StoredShopKeyword"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        StudentFavourite: {
            /** Format: uuid */
            student_favourite_id: string;
            /**
             * Format: uuid
             * @description the student, who must be an existing customer
             */
            student_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        StudentFavouriteChanges: {
            /** Format: uuid */
            student_favourite_id: string;
            /**
             * Format: uuid
             * @description the student, who must be an existing customer
             */
            student_id?: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id?: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created?: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated?: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted?: boolean | null;
        };
        /**
         * @example {
         *       "student_favourite_id": "da9f8e7d-6c54-4b32-9d10-4e97e6d5b411",
         *       "student_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
         *       "shop_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
         *       "created": null,
         *       "updated": null,
         *       "is_deleted": false
         *     }
         */
        StoredStudentFavourite: {
            /** Format: uuid */
            student_favourite_id: string;
            /**
             * Format: uuid
             * @description the student, who must be an existing customer
             */
            student_id: string;
            /**
             * Format: uuid
             * @description must reference an existing record of `shops`
             */
            shop_id: string;
            /**
             * Format: date-time
             * @description when the record was created, according to its source
             */
            created: string | null;
            /**
             * Format: date-time
             * @description when the record last changed; an older version never replaces a newer one
             */
            updated: string | null;
            /** @description marks the record as deleted; it is kept and can still be referenced */
            is_deleted: boolean;
        };
        StudentFavouritePage: {
            records: components["schemas"]["StoredStudentFavourite"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        NewInteraction: {
            /** @enum {string} */
            interaction_type: "FILTER_CLICK" | "SHARE" | "PAGE_VIEW" | "DISCOUNT_CODE";
            /** @description pseudonymous user identifier; a UUID is stored in lower case */
            user_id?: string | null;
            /**
             * Format: uuid
             * @description the student, who must be an existing customer
             */
            student_id?: string | null;
            /** @enum {string} */
            item_type: "TAG" | "OFFER" | "SHOP" | "KEYWORD";
            /**
             * Format: uuid
             * @description id of an existing item of the type in `item_type`
             */
            item_id: string;
            /** @description where the interaction happened */
            city?: string | null;
            /** @description where the interaction happened */
            country?: string | null;
            /** @enum {string|null} */
            platform?: "ANDROID" | "IOS" | "WEB" | "OTHER" | null;
            /**
             * Format: date-time
             * @description when the interaction happened: an ISO 8601 date-time, or an integer of epoch seconds (below 100000000000) or milliseconds
             */
            event_timestamp: number | string;
            /**
             * @description SERVICE if the interaction came from a recommendation, else null
             * @enum {string|null}
             */
            source?: "SERVICE" | null;
            /**
             * Format: uuid
             * @description the recommendation that the interaction came from
             */
            recommendation_id?: string | null;
        };
        Interaction: {
            /**
             * Format: uuid
             * @description a UUIDv7
             */
            interaction_id: string;
            /** @enum {string} */
            interaction_type: "FILTER_CLICK" | "SHARE" | "PAGE_VIEW" | "DISCOUNT_CODE";
            /** @description pseudonymous user identifier; a UUID is stored in lower case */
            user_id: string | null;
            /**
             * Format: uuid
             * @description the student, who must be an existing customer
             */
            student_id: string | null;
            /** @enum {string} */
            item_type: "TAG" | "OFFER" | "SHOP" | "KEYWORD";
            /**
             * Format: uuid
             * @description id of an existing item of the type in `item_type`
             */
            item_id: string;
            /** @description where the interaction happened */
            city: string | null;
            /** @description where the interaction happened */
            country: string | null;
            /** @enum {string|null} */
            platform: "ANDROID" | "IOS" | "WEB" | "OTHER" | null;
            /**
             * Format: date-time
             * @description when the interaction happened: an ISO 8601 date-time, or an integer of epoch seconds (below 100000000000) or milliseconds
             */
            event_timestamp: number | string;
            /**
             * @description SERVICE if the interaction came from a recommendation, else null
             * @enum {string|null}
             */
            source: "SERVICE" | null;
            /**
             * Format: uuid
             * @description the recommendation that the interaction came from
             */
            recommendation_id: string | null;
            /**
             * Format: date-time
             * @description the instant that `event_timestamp` names: RFC 3339, UTC, microseconds
             */
            event_time: string;
            /**
             * Format: date-time
             * @description when it was received
             */
            created: string;
            /** @description only in the answer to a recording, and only if there are any */
            warnings?: components["schemas"]["Warning"][];
        };
        InteractionPage: {
            interactions: components["schemas"]["Interaction"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        /** @enum {string} */
        RecordType: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions";
        /**
         * @description why a record failed
         * @enum {string}
         */
        ProblemCode: "required" | "wrong_type" | "invalid_format" | "invalid_value" | "invalid_characters" | "too_long" | "out_of_range" | "reference_not_found" | "not_an_object" | "nested_too_deeply" | "record_too_large" | "repeated_field" | "erased";
        Counts: {
            received: number;
            created: number;
            updated: number;
            unchanged: number;
            stale: number;
            failed: number;
        };
        UploadAnswer: {
            /**
             * Format: uuid
             * @description names the whole request
             */
            request_id: string;
            type: components["schemas"]["RecordType"];
            /** @description one result per 1,000 records, in the order sent; each is stored in its own transaction */
            batches: components["schemas"]["BatchAnswer"][];
            /** @description true in the answer to a dry run, else absent */
            dry_run?: boolean;
            /** @description only in the answer to a dry run: how many stored values would be lost, by field, also by records whose reference is missing */
            cleared?: {
                [key: string]: number;
            };
        };
        Accepted: {
            received: number;
            /** @description how many are valid */
            accepted: number;
            /** @description why the others are not */
            errors: components["schemas"]["RecordError"][];
            warnings: components["schemas"]["Warning"][];
        };
        ReplayAnswer: {
            /** Format: uuid */
            request_id: string;
            /**
             * @description null if there were records of several types, or of none
             * @enum {string|null}
             */
            type: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions" | null;
            /** @description one result per 1,000 records, in the order sent; each is stored in its own transaction */
            batches: components["schemas"]["BatchAnswer"][];
            /** @description how many matching rejections are left; null if they could not be counted */
            remaining: number | null;
            /** @description where the next replay continues; null when every one that matches has been tried */
            next_cursor: string | null;
        };
        Receipt: {
            /** Format: uuid */
            request_id: string;
            /** @enum {string} */
            operation: "upload" | "replay";
            /**
             * @description null for a replay of several types
             * @enum {string|null}
             */
            type: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions" | null;
            /**
             * @description null for interactions, replays and receipts of earlier versions
             * @enum {string|null}
             */
            mode: "replace" | "merge" | null;
            /**
             * Format: uuid
             * @description null if the request named no run
             */
            run_id: string | null;
            /** @description the index of the file in the run, from 0 */
            file: number | null;
            /** @description the number of the request's first record in the file */
            first_record: number | null;
            /**
             * @description of the batches that are stored
             * @enum {integer}
             */
            status: 200 | 207 | 400;
            /** Format: date-time */
            received: string;
            key_id: string;
            idempotency_key: string | null;
            body_bytes: number;
            duration_ms: number;
            /** @description how many batches the request has */
            batch_count: number;
            /** @description whether every batch is stored */
            complete: boolean;
            missing_batches: number[];
            counts: components["schemas"]["Counts"];
            /** @description one result per 1,000 records, in the order sent; each is stored in its own transaction */
            batches: components["schemas"]["BatchAnswer"][];
        };
        ReceiptSummary: {
            /** Format: uuid */
            request_id: string;
            /** @enum {string} */
            operation: "upload" | "replay";
            /**
             * @description null for a replay of several types
             * @enum {string|null}
             */
            type: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions" | null;
            /**
             * @description null for interactions, replays and receipts of earlier versions
             * @enum {string|null}
             */
            mode: "replace" | "merge" | null;
            /**
             * Format: uuid
             * @description null if the request named no run
             */
            run_id: string | null;
            /** @description the index of the file in the run, from 0 */
            file: number | null;
            /** @description the number of the request's first record in the file */
            first_record: number | null;
            /**
             * @description of the batches that are stored
             * @enum {integer}
             */
            status: 200 | 207 | 400;
            /** Format: date-time */
            received: string;
            key_id: string;
            idempotency_key: string | null;
            body_bytes: number;
            duration_ms: number;
            /** @description how many batches the request has */
            batch_count: number;
            /** @description whether every batch is stored */
            complete: boolean;
            missing_batches: number[];
            counts: components["schemas"]["Counts"];
        };
        Run: {
            /** Format: uuid */
            run_id: string;
            name: string;
            /**
             * @description an open run is `interrupted` without a request or a heartbeat for 15 minutes, and `running` again with the next one
             * @enum {string}
             */
            status: "running" | "interrupted" | "finished" | "failed";
            /** Format: date-time */
            opened: string;
            /**
             * Format: date-time
             * @description when it was opened, when it ended, or its last request or heartbeat
             */
            last_activity: string;
            /** Format: date-time */
            ended: string | null;
            key_id: string;
            client_version: string | null;
            file_count: number;
            /** @description receipts of the run */
            requests: number;
            counts: components["schemas"]["Counts"];
            /** @description records that the client did not send; 0 until the run has ended */
            not_sent: number;
            /** @description records that the client sent and the service did not keep; 0 until the run has ended */
            not_kept: number;
            files: {
                /** @description its index, from 0 */
                file: number;
                name: string;
                bytes: number;
                sha256: string;
                type: components["schemas"]["RecordType"];
                requests: number;
                counts: components["schemas"]["Counts"];
                /** @description records that the client did not send; 0 until the run has ended */
                not_sent: number;
                /** @description records that the client sent and the service did not keep; 0 until the run has ended */
                not_kept: number;
            }[];
            /** @description only if a single run is read: why records of the run failed that are still kept as rejections, the most frequent first */
            reasons?: {
                type: components["schemas"]["RecordType"];
                code: components["schemas"]["ProblemCode"];
                field: string | null;
                count: number;
            }[];
            /** @description only if a single run is read */
            links?: {
                requests: string;
                rejections: string;
            };
        };
        RunSummary: {
            /** Format: uuid */
            run_id: string;
            name: string;
            /**
             * @description an open run is `interrupted` without a request or a heartbeat for 15 minutes, and `running` again with the next one
             * @enum {string}
             */
            status: "running" | "interrupted" | "finished" | "failed";
            /** Format: date-time */
            opened: string;
            /**
             * Format: date-time
             * @description when it was opened, when it ended, or its last request or heartbeat
             */
            last_activity: string;
            /** Format: date-time */
            ended: string | null;
            key_id: string;
            client_version: string | null;
            file_count: number;
            /** @description receipts of the run */
            requests: number;
            counts: components["schemas"]["Counts"];
            /** @description records that the client did not send; 0 until the run has ended */
            not_sent: number;
            /** @description records that the client sent and the service did not keep; 0 until the run has ended */
            not_kept: number;
        };
        RunPage: {
            runs: components["schemas"]["RunSummary"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Erasure: {
            /** Format: uuid */
            erasure_id: string;
            /** @enum {string} */
            mode: "anonymise" | "delete";
            /** @enum {string} */
            state: "pending" | "running" | "swept" | "done";
            /** Format: date-time */
            requested: string;
            key_id: string;
            /** @description how many ids were sent */
            people: number;
            /** @description how many customers of them were stored */
            known: number;
            /** @description how many rows of each table were changed or deleted */
            rows: {
                [key: string]: number;
            };
            started: string | null;
            swept: string | null;
            done: string | null;
            /**
             * @description whether the files of the lake were rewritten too; null before the sweep, and if the organisation has no lake
             * @enum {string|null}
             */
            lake: "pending" | "done" | null;
            lake_done: string | null;
        };
        RequestedErasure: {
            /** Format: uuid */
            erasure_id: string;
            /** @enum {string} */
            mode: "anonymise" | "delete";
            /** @enum {string} */
            state: "pending" | "running" | "swept" | "done";
            /** Format: date-time */
            requested: string;
            key_id: string;
            /** @description how many ids were sent */
            people: number;
            /** @description how many customers of them were stored */
            known: number;
            /** @description how many rows of each table were changed or deleted */
            rows: {
                [key: string]: number;
            };
            started: string | null;
            swept: string | null;
            done: string | null;
            /**
             * @description whether the files of the lake were rewritten too; null before the sweep, and if the organisation has no lake
             * @enum {string|null}
             */
            lake: "pending" | "done" | null;
            lake_done: string | null;
            /** @description customers that are not stored */
            unknown_customer_ids: string[];
        };
        CountedErasure: {
            /** @description always true */
            dry_run: boolean;
            /** @enum {string} */
            mode: "anonymise" | "delete";
            /** @description how many ids were sent */
            people: number;
            /** @description how many customers of them are stored */
            known: number;
            /** @description customers that are not stored */
            unknown_customer_ids: string[];
            /** @description how many rows of each table would be changed or deleted; `interactions_unlinked` are interactions of other students that would lose their `user_id` */
            rows: {
                [key: string]: number;
            };
            /** @description false if counting took too long; then there are at least as many rows */
            complete: boolean;
        };
        ErasurePage: {
            erasures: components["schemas"]["Erasure"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        AccessRequest: {
            /** Format: uuid */
            access_request_id: string;
            /** @enum {string} */
            state: "pending" | "running" | "done" | "expired" | "cancelled";
            /** Format: date-time */
            requested: string;
            key_id: string;
            /** @description how many ids were sent */
            people: number;
            /** @description how many records of each type were collected */
            records: {
                [key: string]: number;
            };
            started: string | null;
            done: string | null;
            /** @description until when its records can be downloaded */
            expires: string | null;
        };
        AccessRequestPage: {
            access_requests: components["schemas"]["AccessRequest"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        ErasureCertificate: {
            certificate: {
                service: string;
                /** Format: uuid */
                organisation_id: string;
                erasure: components["schemas"]["Erasure"];
                searched: string[];
                remains: {
                    where: string;
                    until: string;
                }[];
                /** Format: date-time */
                issued: string;
            };
            /** @description the same certificate, signed: RFC 7515, compact, EdDSA */
            jws: string;
        };
        ReceiptPage: {
            requests: components["schemas"]["ReceiptSummary"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        DaysOfUploads: {
            days: {
                /** Format: date */
                day: string;
                uploads: {
                    /** @description every record was stored */
                    complete: number;
                    /** @description some were */
                    partial: number;
                    /** @description none was */
                    failed: number;
                };
                records: components["schemas"]["Counts"];
            }[];
        };
        Rejection: {
            /** Format: uuid */
            rejection_id: string;
            type: components["schemas"]["RecordType"];
            /** Format: uuid */
            request_id: string;
            /** @description position in the request's `records`, from 0 */
            index: number;
            /** @description the record's id if it is a UUID */
            id: string | null;
            /** Format: date-time */
            rejected: string;
            errors: {
                field: string | null;
                code: components["schemas"]["ProblemCode"];
                message: string;
            }[];
            /**
             * @description how a replay stores the record: as a whole, or only the fields that it has
             * @enum {string}
             */
            mode: "replace" | "merge";
            /** @description the record as it was sent, or as it would have been stored; null if it was larger than 64 KiB */
            record: unknown;
        };
        RejectionPage: {
            rejections: components["schemas"]["Rejection"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        RejectionSummary: {
            rejections: {
                type: components["schemas"]["RecordType"];
                code: components["schemas"]["ProblemCode"];
                field: string | null;
                count: number;
                /** Format: date-time */
                first_seen: string;
                /** Format: date-time */
                last_seen: string;
                example: {
                    /** Format: uuid */
                    rejection_id: string;
                    /** Format: uuid */
                    request_id: string;
                    /** @description position in the request's `records`, from 0 */
                    index: number;
                    id: string | null;
                    message: string;
                } | null;
            }[];
        };
        Overview: {
            types: {
                type: components["schemas"]["RecordType"];
                records: number;
                /**
                 * Format: date-time
                 * @description the newest `updated` ever stored
                 */
                newest_updated: string | null;
                /** Format: date-time */
                last_upload: string | null;
                open_rejections: number;
            }[];
        };
        Change: {
            /** @description continues after this change */
            cursor: string;
            type: components["schemas"]["RecordType"];
            /** Format: uuid */
            id: string;
            /** @description whether the record is marked as deleted, or no longer stored */
            deleted: boolean;
            /** @description whether the record was removed because its person was erased */
            erased: boolean;
            /** @description the current record, as reading it back returns it; null if it is no longer stored */
            record: Record<string, never> | null;
        };
        Expiry: {
            /** @description continues after this entry */
            cursor: string;
            type: components["schemas"]["RecordType"];
            /**
             * Format: date-time
             * @description everything of the type that was received before is gone: remove it from a copy
             */
            expired_before: string;
        };
        ChangePage: {
            changes: (components["schemas"]["Change"] | components["schemas"]["Expiry"])[];
            /** @description continues after this page */
            next_cursor: string;
            /** @description false if everything that is stored has been read */
            has_more: boolean;
        };
        RecommendationsReport: {
            /** Format: date */
            from: string;
            /** Format: date */
            to: string;
            /** @enum {string} */
            window: "1h" | "24h" | "7d";
            /** @enum {string} */
            group_by: "day" | "item_type" | "item" | "platform" | "country" | "recommendation";
            /**
             * Format: date-time
             * @description everything stored before is counted; null while older data is still being counted for the first time
             */
            as_of: string | null;
            correlation: string;
            /** @description of the figures, in a sentence each */
            definitions: {
                [key: string]: string;
            };
            total: {
                recommendations: components["schemas"]["RecommendationsFigures"];
                /** @description null with `group_by=recommendation` */
                browsing: components["schemas"]["RecommendationsFigures"] | null;
            };
            all: {
                transactions: number;
                revenue: number;
                savings: number;
            };
            unusable: {
                service_without_recommendation: number;
                recommendation_without_service: number;
            };
            /** @description in the order of their keys */
            groups: {
                recommendations: components["schemas"]["RecommendationsFigures"];
                /** @description null with `group_by=recommendation` */
                browsing: components["schemas"]["RecommendationsFigures"] | null;
                /** @description what `group_by` names; an item has `item_type` and `item_id` */
                group?: {
                    /** Format: date */
                    day?: string;
                    item_type?: string;
                    /** Format: uuid */
                    item_id?: string;
                    platform?: string | null;
                    country?: string | null;
                    /** Format: uuid */
                    recommendation_id?: string;
                };
            }[];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        RecommendationsFigures: {
            touches: number;
            students: number;
            discount_codes: number;
            transactions: number;
            transactions_by_offer: number;
            transactions_by_shop: number;
            revenue: number;
            savings: number;
            share_of_transactions: number | null;
            /** @description not for browsing */
            engaged_recommendations?: number;
        };
        BatchAnswer: {
            batch: number;
            /** @enum {integer} */
            status: 200 | 207 | 400 | 500;
            data: {
                /** @enum {string} */
                status: "success" | "partial" | "error";
                type: components["schemas"]["RecordType"];
                message: string;
                /** Format: uuid */
                request_id: string;
                /** Format: uuid */
                batch_id: string;
                /** @description for people: how many failed, and the first few */
                error: string | null;
                counts: components["schemas"]["Counts"];
                /** @description for programs: every failed record, with up to 5 wrong fields each */
                errors: components["schemas"]["RecordError"][];
                /** @description records older than the stored ones; skipped, not failed */
                stale: number[];
                warnings: components["schemas"]["Warning"][];
                /** @description in a batch of interactions that is stored: the id of each in the order sent, null for one that failed */
                interaction_ids?: (string | null)[];
            };
        };
        RecordError: {
            /** @description position in the request's `records`, from 0 */
            index: number;
            /** @description the record's id if it is a UUID */
            id: string | null;
            field: string | null;
            /** @enum {string} */
            code: "required" | "wrong_type" | "invalid_format" | "invalid_value" | "invalid_characters" | "too_long" | "out_of_range" | "reference_not_found" | "not_an_object" | "nested_too_deeply" | "record_too_large" | "repeated_field" | "erased" | "not_stored" | "outcome_unknown" | "run_ended";
            message: string;
        };
        Warning: {
            /** @enum {string} */
            code: "unknown_field" | "more_unknown_fields" | "updated_in_future" | "repeated_id";
            field: string | null;
            count: number;
            message: string;
        };
        Lake: {
            tables: components["schemas"]["LakeTable"][];
            /** @description if the lake is off: the code of the error, and what to do */
            notice: {
                /** @enum {string} */
                code: "lake_off";
                message: string;
            } | null;
        };
        LakeTable: {
            /** @description its name */
            table: string;
            /** @enum {string} */
            state: "off" | "copying" | "following";
            /** @description null if nothing is written yet */
            version: number | null;
            rows: number;
            bytes: number;
            files: number;
            /**
             * Format: date-time
             * @description everything stored before is in the table; null if that is not known
             */
            as_of: string | null;
        };
        LakeFile: {
            /** Format: uuid */
            file_id: string;
            /** @description the value of each partition column, the same for all rows; the file does not contain it */
            partition: {
                [key: string]: string;
            };
            rows: number;
            bytes: number;
            /** @description hexadecimal */
            sha256: string;
        };
        LakeFilePage: {
            table: string;
            version: number;
            /** Format: uuid */
            table_id: string;
            description: string;
            /** @description the columns as JSON, as the log of a Delta Lake table has them */
            schema: string;
            partition_columns: string[];
            files: components["schemas"]["LakeFile"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Error: {
            /** @description the name of the status */
            error: string;
            /**
             * @description for programs; the list of errors explains what to do about each
             * @enum {string}
             */
            code: "malformed_request" | "malformed_json" | "malformed_utf8" | "malformed_encoding" | "nested_too_deeply" | "invalid_request" | "unauthorized" | "https_required" | "missing_permission" | "origin_not_allowed" | "organisation_suspended" | "quota_exceeded" | "not_found" | "unknown_type" | "record_not_found" | "receipt_not_found" | "run_not_found" | "interaction_not_found" | "erasure_not_found" | "access_request_not_found" | "access_request_expired" | "access_request_cancelled" | "lake_table_not_found" | "lake_file_not_found" | "method_not_allowed" | "timed_out" | "erasure_not_swept" | "too_many_erasures" | "run_ended" | "file_uploaded" | "too_many_runs" | "access_request_not_done" | "too_many_access_requests" | "report_off" | "lake_off" | "organisation_deleted" | "lake_version_gone" | "cursor_too_old" | "body_too_large" | "unsupported_media_type" | "unsupported_encoding" | "range_not_satisfiable" | "expectation_failed" | "idempotency_key_reused" | "too_many_failed_keys" | "too_many_requests" | "headers_too_large" | "internal" | "outcome_unknown" | "erasure_not_configured" | "lake_not_configured" | "database_unavailable" | "schema_behind" | "schema_ahead" | "stalled" | "overloaded" | "shutting_down" | "clock_differs" | "database_unsafe" | "out_of_descriptors" | "erasure_key_missing" | "lake_unavailable";
            /** @description for people: what is wrong, then what to do */
            message: string;
            /** @description with `missing_permission`: the permission that the key lacks */
            permission?: string;
            /** @description with `invalid_request`: each invalid field or parameter */
            details?: components["schemas"]["ErrorDetail"][];
        };
        ErrorDetail: {
            /** @description name of the field, parameter or header */
            field: string;
            /** @enum {string} */
            code: "required" | "wrong_type" | "invalid_format" | "invalid_value" | "invalid_characters" | "too_long" | "out_of_range" | "reference_not_found" | "not_an_object" | "nested_too_deeply" | "record_too_large" | "repeated_field" | "erased" | "unknown_field" | "unknown_parameter" | "repeated_parameter" | "not_combinable" | "too_many_records" | "file_uploaded" | "too_large";
            message: string;
        };
    };
    responses: {
        /** @description The request is malformed, or a parameter or field is invalid; `details` lists each problem. Codes: `malformed_request`, `malformed_json`, `malformed_utf8`, `malformed_encoding`, `nested_too_deeply`, `invalid_request`. */
        BadRequest: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key or the admin token is missing or invalid. Codes: `unauthorized`. */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key does not allow this or this origin, its organisation is suspended or has used up its quota, or HTTPS was not used. Codes: `https_required`, `missing_permission`, `origin_not_allowed`, `organisation_suspended`, `quota_exceeded`. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Intake-Quota": components["headers"]["Intake-Quota"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The request took too long to arrive; send it again. Codes: `timed_out`. */
        RequestTimeout: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The organisation was deleted. Codes: `organisation_deleted`, `lake_version_gone`, `cursor_too_old`. */
        Gone: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is too large, as sent or once decompressed; split it. Codes: `body_too_large`. */
        ContentTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is not JSON, or its compression is not supported. Codes: `unsupported_media_type`, `unsupported_encoding`. */
        UnsupportedMediaType: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The only expectation that can be met is `100-continue`. Codes: `expectation_failed`. */
        ExpectationFailed: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many requests, records, bytes or wrong keys; wait for the number of seconds in `Retry-After`. Codes: `too_many_failed_keys`, `too_many_requests`. */
        TooManyRequests: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The address and the headers are too large; shorten them. Codes: `headers_too_large`. */
        HeadersTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Something went wrong on our side; send the request again. Codes: `internal`, `outcome_unknown`. */
        InternalError: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The service is not available at the moment; send the request again. Codes: `database_unavailable`, `schema_behind`, `schema_ahead`, `stalled`, `overloaded`, `shutting_down`, `clock_differs`, `database_unsafe`, `out_of_descriptors`, `erasure_key_missing`, `lake_unavailable`. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No record failed. The example shows the answer to an upload of shops. */
        Uploaded: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Intake-Quota": components["headers"]["Intake-Quota"];
                "Idempotency-Key": components["headers"]["Idempotency-Key"];
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                 *       "type": "shops",
                 *       "batches": [
                 *         {
                 *           "batch": 1,
                 *           "status": 200,
                 *           "data": {
                 *             "status": "success",
                 *             "type": "shops",
                 *             "message": "1 record received: 1 created.",
                 *             "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                 *             "batch_id": "019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b",
                 *             "error": null,
                 *             "counts": {
                 *               "received": 1,
                 *               "created": 1,
                 *               "updated": 0,
                 *               "unchanged": 0,
                 *               "stale": 0,
                 *               "failed": 0
                 *             },
                 *             "errors": [],
                 *             "stale": [],
                 *             "warnings": []
                 *           }
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UploadAnswer"];
            };
        };
        /** @description Some records or batches failed; the others are stored. The example shows the answer to an upload of shops. */
        UploadedInPart: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                /** @description seconds to wait before sending the request again */
                "Retry-After"?: number;
                "Intake-Quota": components["headers"]["Intake-Quota"];
                "Idempotency-Key": components["headers"]["Idempotency-Key"];
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                 *       "type": "shops",
                 *       "batches": [
                 *         {
                 *           "batch": 1,
                 *           "status": 207,
                 *           "data": {
                 *             "status": "partial",
                 *             "type": "shops",
                 *             "message": "2 records received: 1 created, 1 failed.",
                 *             "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                 *             "batch_id": "019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b",
                 *             "error": "1 of 2 records failed. Record 1: shop_id is required and must not be null or empty.",
                 *             "counts": {
                 *               "received": 2,
                 *               "created": 1,
                 *               "updated": 0,
                 *               "unchanged": 0,
                 *               "stale": 0,
                 *               "failed": 1
                 *             },
                 *             "errors": [
                 *               {
                 *                 "index": 1,
                 *                 "id": null,
                 *                 "field": "shop_id",
                 *                 "code": "required",
                 *                 "message": "is required and must not be null or empty"
                 *               }
                 *             ],
                 *             "stale": [],
                 *             "warnings": []
                 *           }
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UploadAnswer"];
            };
        };
        /** @description Every record failed, or the request as a whole did. */
        UploadFailed: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Intake-Quota": components["headers"]["Intake-Quota"];
                "Idempotency-Key": components["headers"]["Idempotency-Key"];
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["UploadAnswer"] | components["schemas"]["Error"];
            };
        };
        /** @description There is nothing with this id. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The run has ended. Code: `run_ended`. */
        RunEnded: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The `Idempotency-Key` was used with another body. Code: `idempotency_key_reused`. */
        IdempotencyKeyReused: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description No batch is known to be stored, because of a problem on our side; send the request again. */
        UploadNotStored: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Intake-Quota": components["headers"]["Intake-Quota"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["UploadAnswer"] | components["schemas"]["Error"];
            };
        };
        /** @description The run. */
        RunAnswer: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "run_id": "019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988",
                 *       "name": "nightly export",
                 *       "status": "finished",
                 *       "opened": "2026-03-14T09:26:04.560Z",
                 *       "last_activity": "2026-03-14T09:27:10.042Z",
                 *       "ended": "2026-03-14T09:27:10.042Z",
                 *       "key_id": "7dQk2LrX9Ab",
                 *       "client_version": "0.2.0",
                 *       "file_count": 1,
                 *       "requests": 1,
                 *       "counts": {
                 *         "received": 1,
                 *         "created": 1,
                 *         "updated": 0,
                 *         "unchanged": 0,
                 *         "stale": 0,
                 *         "failed": 0
                 *       },
                 *       "not_sent": 0,
                 *       "not_kept": 0,
                 *       "files": [
                 *         {
                 *           "file": 0,
                 *           "name": "shops.csv",
                 *           "bytes": 190,
                 *           "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                 *           "type": "shops",
                 *           "requests": 1,
                 *           "counts": {
                 *             "received": 1,
                 *             "created": 1,
                 *             "updated": 0,
                 *             "unchanged": 0,
                 *             "stale": 0,
                 *             "failed": 0
                 *           },
                 *           "not_sent": 0,
                 *           "not_kept": 0
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Run"];
            };
        };
        /** @description With a browser key: valid data is stored, or kept as a rejection if a reference is missing; the answer does not show which. */
        Accepted: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "received": 1,
                 *       "accepted": 1,
                 *       "errors": [],
                 *       "warnings": []
                 *     }
                 */
                "application/json": components["schemas"]["Accepted"];
            };
        };
        /** @description Every interaction failed, or the request as a whole did. */
        InteractionsFailed: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Intake-Quota": components["headers"]["Intake-Quota"];
                "Idempotency-Key": components["headers"]["Idempotency-Key"];
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["UploadAnswer"] | components["schemas"]["Error"] | components["schemas"]["Accepted"];
            };
        };
        /** @description The service has no lake. Code: `lake_not_configured`. */
        LakeNotConfigured: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The organisation has no lake. Code: `lake_off`. */
        LakeOff: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /**
         * @description validate only; nothing is stored
         * @example true
         */
        DryRun: boolean;
        /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
        Mode: "replace" | "merge";
        /** @description the run that the records belong to; it must not have ended */
        RunId: string;
        /** @description the index of the records' file in the `files` of the run, from 0 */
        File: number;
        /** @description the number of the first of the records in the file, from 1 */
        FirstRecord: number;
        /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
        IdempotencyKey: string;
        /** @description only records created or changed at this time or later */
        StoredSince: string;
        /** @description include records marked as deleted; default false */
        IncludeDeleted: boolean;
        /** @description the `next_cursor` of the previous page, or the id of the last record received */
        Cursor: string;
        /** @description records per page, default 100 */
        Limit: number;
        /** @description the id of the run */
        RunsRunId: string;
        /** @description the `next_cursor` of the previous page */
        RunsCursor: string;
        /** @description only entries with this `type` */
        Type: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions";
        /** @description only rejections with an error of this code */
        Code: "required" | "wrong_type" | "invalid_format" | "invalid_value" | "invalid_characters" | "too_long" | "out_of_range" | "reference_not_found" | "not_an_object" | "nested_too_deeply" | "record_too_large" | "repeated_field" | "erased";
        /** @description only rejections with an error in this field */
        Field: string;
        /** @description only rejections of this upload */
        RequestId: string;
        /** @description only rejections of the uploads of this run */
        RejectionsRunId: string;
        /** @description only what was received at this time or later */
        From: string;
        /** @description only what was received before this time */
        To: string;
        /** @description the name of a table */
        Table: "customers" | "shops" | "transactions" | "offers" | "branches" | "categories" | "shop_categories" | "institutes" | "courses" | "tags" | "shop_tags" | "keywords" | "shop_keywords" | "student_favourites" | "interactions";
        /** @description the id of the erasure */
        ErasureId: string;
        /** @description the id of the access request */
        AccessRequestId: string;
    };
    requestBodies: never;
    headers: {
        /** @description identifies this request */
        "X-Request-Id": string;
        /** @description seconds to wait before sending the request again */
        "Retry-After": number;
        /** @description what remains of each limit, and the seconds until its window ends */
        RateLimit: string;
        /** @description each limit: its quota and its window in seconds */
        "RateLimit-Policy": string;
        /**
         * @description if 80 % or more of a quota of the organisation is used: of records, of bytes, or of both, what is `used` and what it may be at most; not with a browser key
         * @example "records";used=810000;max=1000000
         */
        "Intake-Quota": string;
        /** @description with NDJSON: where the change feed continues with later changes; send it as `after` of `/v1/changes` */
        "Changes-Cursor": string;
        /** @description the `Idempotency-Key` of the request, in every answer to a request with one in ASCII; a client can check that the answer is to its request */
        "Idempotency-Key": string;
        /** @description the whole answer repeats the answer to the first request with this `Idempotency-Key`; absent if this request stored a batch */
        "Idempotency-Replayed": "true";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "list-customers": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CustomerPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-customers": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Customer"] | components["schemas"]["CustomerChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-transactions": {
        parameters: {
            query?: {
                /** @description only transactions of this shop */
                shop_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-transactions": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Transaction"] | components["schemas"]["TransactionChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-offers": {
        parameters: {
            query?: {
                /** @description only offers of this shop */
                shop_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OfferPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-offers": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Offer"] | components["schemas"]["OfferChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-shops": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShopPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-shops": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Shop"] | components["schemas"]["ShopChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-branches": {
        parameters: {
            query?: {
                /** @description only branches of this shop */
                shop_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BranchPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-branches": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Branch"] | components["schemas"]["BranchChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-categories": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CategoryPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-categories": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Category"] | components["schemas"]["CategoryChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-shop-categories": {
        parameters: {
            query?: {
                /** @description only shop categories of this shop */
                shop_id?: string;
                /** @description only shop categories of this category */
                category_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShopCategoryPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-shop-categories": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["ShopCategory"] | components["schemas"]["ShopCategoryChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-institutes": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InstitutePage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-institutes": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Institute"] | components["schemas"]["InstituteChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-courses": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CoursePage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-courses": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Course"] | components["schemas"]["CourseChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-tags": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TagPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-tags": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Tag"] | components["schemas"]["TagChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-shop-tags": {
        parameters: {
            query?: {
                /** @description only shop tags of this shop */
                shop_id?: string;
                /** @description only shop tags of this tag */
                tag_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShopTagPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-shop-tags": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["ShopTag"] | components["schemas"]["ShopTagChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-keywords": {
        parameters: {
            query?: {
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeywordPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-keywords": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["Keyword"] | components["schemas"]["KeywordChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-shop-keywords": {
        parameters: {
            query?: {
                /** @description only shop keywords of this shop */
                shop_id?: string;
                /** @description only shop keywords of this keyword */
                keyword_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShopKeywordPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-shop-keywords": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["ShopKeyword"] | components["schemas"]["ShopKeywordChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-student-favourites": {
        parameters: {
            query?: {
                /** @description only student favourites of this student */
                student_id?: string;
                /** @description only student favourites of this shop */
                shop_id?: string;
                /** @description only records created or changed at this time or later */
                stored_since?: components["parameters"]["StoredSince"];
                /** @description include records marked as deleted; default false */
                include_deleted?: components["parameters"]["IncludeDeleted"];
                /** @description the `next_cursor` of the previous page, or the id of the last record received */
                cursor?: components["parameters"]["Cursor"];
                /** @description records per page, default 100 */
                limit?: components["parameters"]["Limit"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every record. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StudentFavouritePage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-student-favourites": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description how a record is stored over the one with the same id: `replace` (the default) as a whole; with `merge`, a field that is left out keeps its stored value, and null clears it */
                mode?: components["parameters"]["Mode"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: (components["schemas"]["StudentFavourite"] | components["schemas"]["StudentFavouriteChanges"])[];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["UploadFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The types. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "types": [
                     *         {
                     *           "type": "shops",
                     *           "records": 512,
                     *           "newest_updated": "2026-03-14T09:26:53Z",
                     *           "last_upload": "2026-03-14T09:30:00.123Z",
                     *           "open_rejections": 0
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-customers": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the customer */
                customer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredCustomer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-transactions": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the transaction */
                transaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredTransaction"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-offers": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the offer */
                offer_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredOffer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-shops": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the shop */
                shop_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredShop"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-branches": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the branch */
                branch_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredBranch"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-categories": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the category */
                category_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredCategory"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-shop-categories": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the shop category */
                shop_category_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredShopCategory"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-institutes": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the institute */
                institute_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredInstitute"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-courses": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the course */
                course_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredCourse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-tags": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the tag */
                tag_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredTag"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-shop-tags": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the shop tag */
                shop_tag_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredShopTag"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-keywords": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the keyword */
                keyword_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredKeyword"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-shop-keywords": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the shop keyword */
                shop_keyword_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredShopKeyword"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-student-favourites": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the student favourite */
                student_favourite_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The record, with null in every field without a value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredStudentFavourite"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-changes": {
        parameters: {
            query?: {
                /** @description a cursor from this feed or from an export; default is the oldest change kept */
                after?: string;
                /**
                 * @description only changes of these types, separated by commas; default is all
                 * @example shops,transactions
                 */
                types?: string;
                /** @description changes per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or changes as they happen. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "changes": [
                     *         {
                     *           "cursor": "42-0-0-1f0c2d3e-8Pz0oWc3l0rXyYQ1n9m5Kw",
                     *           "type": "tags",
                     *           "id": "9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807",
                     *           "deleted": false,
                     *           "erased": false,
                     *           "record": {
                     *             "tag_id": "9e3d2c1b-0a98-4f76-9b54-02d1c0b9f807",
                     *             "name": "vegan",
                     *             "created": null,
                     *             "updated": null,
                     *             "is_deleted": false
                     *           }
                     *         },
                     *         {
                     *           "cursor": "42-0-0-1f0c2d3e-8Pz0oWc3l0rXyYQ1n9m5Kw",
                     *           "type": "interactions",
                     *           "expired_before": "2026-01-01T00:00:00.000Z"
                     *         }
                     *       ],
                     *       "next_cursor": "42-0-0-1f0c2d3e-8Pz0oWc3l0rXyYQ1n9m5Kw",
                     *       "has_more": false
                     *     }
                     */
                    "application/json": components["schemas"]["ChangePage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The feed cannot continue from this cursor, or the organisation was deleted. Codes: `cursor_too_old`, `organisation_deleted`. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-requests": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: components["parameters"]["Type"];
                /** @description only receipts with this status */
                status?: "200" | "207" | "400";
                /** @description only entries with this `idempotency_key` */
                idempotency_key?: string;
                /** @description only receipts of this run */
                run_id?: string;
                /** @description only what was received at this time or later */
                from?: components["parameters"]["From"];
                /** @description only what was received before this time */
                to?: components["parameters"]["To"];
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["RunsCursor"];
                /** @description receipts per page, default 20 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "requests": [
                     *         {
                     *           "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "operation": "upload",
                     *           "type": "shops",
                     *           "mode": "replace",
                     *           "run_id": null,
                     *           "file": null,
                     *           "first_record": null,
                     *           "status": 200,
                     *           "received": "2026-03-14T09:26:53.035Z",
                     *           "key_id": "7dQk2LrX9Ab",
                     *           "idempotency_key": null,
                     *           "body_bytes": 214,
                     *           "duration_ms": 12,
                     *           "batch_count": 1,
                     *           "complete": true,
                     *           "missing_batches": [],
                     *           "counts": {
                     *             "received": 1,
                     *             "created": 1,
                     *             "updated": 0,
                     *             "unchanged": 0,
                     *             "stale": 0,
                     *             "failed": 0
                     *           }
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["ReceiptPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "count-requests": {
        parameters: {
            query?: {
                /** @description how many, default 14 */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A row for each day. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "days": [
                     *         {
                     *           "day": "2026-03-14",
                     *           "uploads": {
                     *             "complete": 1,
                     *             "partial": 1,
                     *             "failed": 0
                     *           },
                     *           "records": {
                     *             "received": 1,
                     *             "created": 1,
                     *             "updated": 0,
                     *             "unchanged": 0,
                     *             "stale": 0,
                     *             "failed": 0
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["DaysOfUploads"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-request": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the `request_id` of the upload, or its `X-Request-Id` */
                request_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receipt. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "operation": "upload",
                     *       "type": "shops",
                     *       "mode": "replace",
                     *       "run_id": null,
                     *       "file": null,
                     *       "first_record": null,
                     *       "status": 200,
                     *       "received": "2026-03-14T09:26:53.035Z",
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "idempotency_key": null,
                     *       "body_bytes": 214,
                     *       "duration_ms": 12,
                     *       "batch_count": 1,
                     *       "complete": true,
                     *       "missing_batches": [],
                     *       "counts": {
                     *         "received": 1,
                     *         "created": 1,
                     *         "updated": 0,
                     *         "unchanged": 0,
                     *         "stale": 0,
                     *         "failed": 0
                     *       },
                     *       "batches": [
                     *         {
                     *           "batch": 1,
                     *           "status": 200,
                     *           "data": {
                     *             "status": "success",
                     *             "type": "shops",
                     *             "message": "1 record received: 1 created.",
                     *             "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *             "batch_id": "019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b",
                     *             "error": null,
                     *             "counts": {
                     *               "received": 1,
                     *               "created": 1,
                     *               "updated": 0,
                     *               "unchanged": 0,
                     *               "stale": 0,
                     *               "failed": 0
                     *             },
                     *             "errors": [],
                     *             "stale": [],
                     *             "warnings": []
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Receipt"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-runs": {
        parameters: {
            query?: {
                /** @description only runs with this name */
                name?: string;
                /** @description only runs with this status */
                status?: "running" | "interrupted" | "finished" | "failed";
                /** @description only runs that were opened at this time or later */
                from?: string;
                /** @description only runs that were opened before this time */
                to?: string;
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["RunsCursor"];
                /** @description runs per page, default 20 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "runs": [
                     *         {
                     *           "run_id": "019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988",
                     *           "name": "nightly export",
                     *           "status": "finished",
                     *           "opened": "2026-03-14T09:26:04.560Z",
                     *           "last_activity": "2026-03-14T09:27:10.042Z",
                     *           "ended": "2026-03-14T09:27:10.042Z",
                     *           "key_id": "7dQk2LrX9Ab",
                     *           "client_version": "0.2.0",
                     *           "file_count": 1,
                     *           "requests": 1,
                     *           "counts": {
                     *             "received": 1,
                     *             "created": 1,
                     *             "updated": 0,
                     *             "unchanged": 0,
                     *             "stale": 0,
                     *             "failed": 0
                     *           },
                     *           "not_sent": 0,
                     *           "not_kept": 0
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["RunPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "open-run": {
        parameters: {
            query?: never;
            header?: {
                /** @description Identifies the run as long as it is kept. Another body gets 422. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description what the runs of an export have in common */
                    name: string;
                    client_version?: string;
                    files: {
                        /** @description the base name, without folders */
                        name: string;
                        /** @description the size of the file */
                        bytes: number;
                        /** @description the SHA-256 of its bytes */
                        sha256: string;
                        /**
                         * @description the type of its records
                         * @enum {string}
                         */
                        type: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions";
                    }[];
                    /**
                     * @description true to upload files of interactions again that were uploaded before
                     * @default false
                     */
                    again?: boolean;
                };
            };
        };
        responses: {
            200: components["responses"]["RunAnswer"];
            201: components["responses"]["RunAnswer"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description A file of interactions was uploaded before, or too many runs are open. Codes: `file_uploaded`, `too_many_runs`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "note-heartbeat": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the run */
                run_id: components["parameters"]["RunsRunId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run is running. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "run_id": "019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988",
                     *       "status": "running"
                     *     }
                     */
                    "application/json": {
                        /** Format: uuid */
                        run_id: string;
                        /** @enum {string} */
                        status: "running";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "end-run": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the run */
                run_id: components["parameters"]["RunsRunId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {string} */
                    status: "finished" | "failed";
                    files?: {
                        /** @description the index of the file, from 0 */
                        file: number;
                        /** @description records that were not sent */
                        not_sent: number;
                        /** @description records that were sent and not kept */
                        not_kept: number;
                    }[];
                };
            };
        };
        responses: {
            200: components["responses"]["RunAnswer"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-run": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the run */
                run_id: components["parameters"]["RunsRunId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "run_id": "019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988",
                     *       "name": "nightly export",
                     *       "status": "finished",
                     *       "opened": "2026-03-14T09:26:04.560Z",
                     *       "last_activity": "2026-03-14T09:27:10.042Z",
                     *       "ended": "2026-03-14T09:27:10.042Z",
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "client_version": "0.2.0",
                     *       "file_count": 1,
                     *       "requests": 1,
                     *       "counts": {
                     *         "received": 1,
                     *         "created": 1,
                     *         "updated": 0,
                     *         "unchanged": 0,
                     *         "stale": 0,
                     *         "failed": 0
                     *       },
                     *       "not_sent": 0,
                     *       "not_kept": 0,
                     *       "files": [
                     *         {
                     *           "file": 0,
                     *           "name": "shops.csv",
                     *           "bytes": 190,
                     *           "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                     *           "type": "shops",
                     *           "requests": 1,
                     *           "counts": {
                     *             "received": 1,
                     *             "created": 1,
                     *             "updated": 0,
                     *             "unchanged": 0,
                     *             "stale": 0,
                     *             "failed": 0
                     *           },
                     *           "not_sent": 0,
                     *           "not_kept": 0
                     *         }
                     *       ],
                     *       "reasons": [],
                     *       "links": {
                     *         "requests": "/v1/requests?run_id=019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988",
                     *         "rejections": "/v1/rejections?run_id=019ced6b-9d10-7b1c-8f2e-3d4c5b6a7988"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Run"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-rejections": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: components["parameters"]["Type"];
                /** @description only rejections with an error of this code */
                code?: components["parameters"]["Code"];
                /** @description only rejections with an error in this field */
                field?: components["parameters"]["Field"];
                /** @description only rejections of this upload */
                request_id?: components["parameters"]["RequestId"];
                /** @description only rejections of the uploads of this run */
                run_id?: components["parameters"]["RejectionsRunId"];
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["RunsCursor"];
                /** @description rejections per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejectionPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "discard-rejections": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: components["parameters"]["Type"];
                /** @description only rejections with an error of this code */
                code?: components["parameters"]["Code"];
                /** @description only rejections with an error in this field */
                field?: components["parameters"]["Field"];
                /** @description only rejections of this upload */
                request_id?: components["parameters"]["RequestId"];
                /** @description only rejections of the uploads of this run */
                run_id?: components["parameters"]["RejectionsRunId"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many were deleted, and whether there are more. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "discarded": 12,
                     *       "has_more": false
                     *     }
                     */
                    "application/json": {
                        discarded: number;
                        /** @description whether time ran out before all were deleted; then send the same request again */
                        has_more: boolean;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "summarise-rejections": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: components["parameters"]["Type"];
                /** @description only rejections with an error of this code */
                code?: components["parameters"]["Code"];
                /** @description only rejections with an error in this field */
                field?: components["parameters"]["Field"];
                /** @description only rejections of this upload */
                request_id?: components["parameters"]["RequestId"];
                /** @description only rejections of the uploads of this run */
                run_id?: components["parameters"]["RejectionsRunId"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The most frequent first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejectionSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "replay-rejections": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: components["parameters"]["Type"];
                /** @description only rejections with an error of this code */
                code?: components["parameters"]["Code"];
                /** @description only rejections with an error in this field */
                field?: components["parameters"]["Field"];
                /** @description only rejections of this upload */
                request_id?: components["parameters"]["RequestId"];
                /** @description only rejections of the uploads of this run */
                run_id?: components["parameters"]["RejectionsRunId"];
                /** @description the `next_cursor` of the previous replay: rejections that it tried are skipped */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No record failed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Intake-Quota": components["headers"]["Intake-Quota"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayAnswer"];
                };
            };
            /** @description Some failed again. */
            207: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    /** @description seconds to wait before sending the request again */
                    "Retry-After"?: number;
                    "Intake-Quota": components["headers"]["Intake-Quota"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayAnswer"];
                };
            };
            /** @description Every record failed again, or a parameter is unknown or wrong. */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Intake-Quota": components["headers"]["Intake-Quota"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayAnswer"] | components["schemas"]["Error"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-interactions": {
        parameters: {
            query?: {
                /** @description only entries with this `student_id` */
                student_id?: string;
                /** @description only entries with this `user_id` */
                user_id?: string;
                /** @description only entries with this `item_id` */
                item_id?: string;
                /** @description only entries with this `recommendation_id` */
                recommendation_id?: string;
                /** @description only entries with this `interaction_type` */
                interaction_type?: "FILTER_CLICK" | "SHARE" | "PAGE_VIEW" | "DISCOUNT_CODE";
                /** @description only entries with this `item_type` */
                item_type?: "TAG" | "OFFER" | "SHOP" | "KEYWORD";
                /** @description only entries with this `source` */
                source?: "SERVICE";
                /** @description only interactions that happened at this time or later */
                event_from?: string;
                /** @description only interactions that happened before this time */
                event_to?: string;
                /** @description only what was received at this time or later */
                from?: components["parameters"]["From"];
                /** @description only what was received before this time */
                to?: components["parameters"]["To"];
                /** @description the `next_cursor` of the previous page, or the id of the last interaction received */
                cursor?: string;
                /** @description interactions per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page, or every interaction that matches. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Changes-Cursor": components["headers"]["Changes-Cursor"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "interactions": [
                     *         {
                     *           "interaction_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "interaction_type": "PAGE_VIEW",
                     *           "user_id": "visitor-7d1f",
                     *           "student_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
                     *           "item_type": "SHOP",
                     *           "item_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
                     *           "city": "Leeds",
                     *           "country": "GB",
                     *           "platform": "WEB",
                     *           "event_timestamp": "2026-03-14T09:26:53Z",
                     *           "source": "SERVICE",
                     *           "recommendation_id": "0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9",
                     *           "event_time": "2026-03-14T09:26:53.000000Z",
                     *           "created": "2026-03-14T17:37:07.115Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["InteractionPage"];
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "record-interaction": {
        parameters: {
            query?: never;
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewInteraction"];
            };
        };
        responses: {
            /** @description The interaction as it is stored. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    "Intake-Quota": components["headers"]["Intake-Quota"];
                    "Idempotency-Key": components["headers"]["Idempotency-Key"];
                    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "interaction_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "interaction_type": "PAGE_VIEW",
                     *       "user_id": "visitor-7d1f",
                     *       "student_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
                     *       "item_type": "SHOP",
                     *       "item_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
                     *       "city": "Leeds",
                     *       "country": "GB",
                     *       "platform": "WEB",
                     *       "event_timestamp": "2026-03-14T09:26:53Z",
                     *       "source": "SERVICE",
                     *       "recommendation_id": "0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9",
                     *       "event_time": "2026-03-14T09:26:53.000000Z",
                     *       "created": "2026-03-14T17:37:07.115Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Interaction"];
                };
            };
            202: components["responses"]["Accepted"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "upload-interactions": {
        parameters: {
            query?: {
                /**
                 * @description validate only; nothing is stored
                 * @example true
                 */
                dry_run?: components["parameters"]["DryRun"];
                /** @description the run that the records belong to; it must not have ended */
                run_id?: components["parameters"]["RunId"];
                /** @description the index of the records' file in the `files` of the run, from 0 */
                file?: components["parameters"]["File"];
                /** @description the number of the first of the records in the file, from 1 */
                first_record?: components["parameters"]["FirstRecord"];
            };
            header?: {
                /** @description Identifies this request for 24 hours. Sending the same body again returns the first answer, and another body gets 422. */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    records: components["schemas"]["NewInteraction"][];
                };
            };
        };
        responses: {
            200: components["responses"]["Uploaded"];
            202: components["responses"]["Accepted"];
            207: components["responses"]["UploadedInPart"];
            400: components["responses"]["InteractionsFailed"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["RunEnded"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            422: components["responses"]["IdempotencyKeyReused"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["UploadNotStored"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-interaction": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the interaction */
                interaction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The interaction. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "interaction_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "interaction_type": "PAGE_VIEW",
                     *       "user_id": "visitor-7d1f",
                     *       "student_id": "c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11",
                     *       "item_type": "SHOP",
                     *       "item_id": "5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01",
                     *       "city": "Leeds",
                     *       "country": "GB",
                     *       "platform": "WEB",
                     *       "event_timestamp": "2026-03-14T09:26:53Z",
                     *       "source": "SERVICE",
                     *       "recommendation_id": "0a1b2c3d-4e5f-4061-8273-94a5b6c7d8e9",
                     *       "event_time": "2026-03-14T09:26:53.000000Z",
                     *       "created": "2026-03-14T17:37:07.115Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Interaction"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "report-recommendations": {
        parameters: {
            query?: {
                /** @description the first day, in UTC; default 30 days before `to` */
                from?: string;
                /** @description the day after the last one, at most 366 days after `from`; default tomorrow */
                to?: string;
                /** @description for how long a touch is credited, default 24h */
                window?: "1h" | "24h" | "7d";
                /** @description default day */
                group_by?: "day" | "item_type" | "item" | "platform" | "country" | "recommendation";
                /** @description the `next_cursor` of the previous page, with the same `group_by` */
                cursor?: string;
                /** @description groups per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The report, with one page of its groups. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-03-01",
                     *       "to": "2026-04-01",
                     *       "window": "24h",
                     *       "group_by": "item_type",
                     *       "as_of": "2026-04-02T08:15:00.000Z",
                     *       "correlation": "These figures are correlation: they do not say that a recommendation was the cause of a purchase.",
                     *       "definitions": {
                     *         "touch": "an interaction with source SERVICE and a recommendation_id; of browsing, one with neither"
                     *       },
                     *       "total": {
                     *         "recommendations": {
                     *           "touches": 1200,
                     *           "engaged_recommendations": 830,
                     *           "students": 410,
                     *           "discount_codes": 96,
                     *           "transactions": 41,
                     *           "transactions_by_offer": 30,
                     *           "transactions_by_shop": 11,
                     *           "revenue": 1033.5,
                     *           "savings": 154.2,
                     *           "share_of_transactions": 0.082
                     *         },
                     *         "browsing": {
                     *           "touches": 1200,
                     *           "students": 410,
                     *           "discount_codes": 96,
                     *           "transactions": 41,
                     *           "transactions_by_offer": 30,
                     *           "transactions_by_shop": 11,
                     *           "revenue": 1033.5,
                     *           "savings": 154.2,
                     *           "share_of_transactions": 0.082
                     *         }
                     *       },
                     *       "all": {
                     *         "transactions": 500,
                     *         "revenue": 12904.75,
                     *         "savings": 1718.4
                     *       },
                     *       "unusable": {
                     *         "service_without_recommendation": 7,
                     *         "recommendation_without_service": 0
                     *       },
                     *       "groups": [],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["RecommendationsReport"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The report is switched off for the organisation, which is the default; the operator can switch it on. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-lake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tables. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "tables": [
                     *         {
                     *           "table": "interactions",
                     *           "state": "following",
                     *           "version": 118,
                     *           "rows": 20451873,
                     *           "bytes": 198113402,
                     *           "files": 41,
                     *           "as_of": "2026-03-14T09:26:53.035Z"
                     *         }
                     *       ],
                     *       "notice": null
                     *     }
                     */
                    "application/json": components["schemas"]["Lake"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            501: components["responses"]["LakeNotConfigured"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-lake-files": {
        parameters: {
            query?: {
                /** @description the `next_cursor` of the previous page */
                cursor?: string;
                /** @description files per page, default 1000 */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description the name of a table */
                table: components["parameters"]["Table"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "table": "interactions",
                     *       "version": 118,
                     *       "table_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "description": "One row for each interaction.",
                     *       "schema": "{\"type\":\"struct\",\"fields\":[{\"name\":\"interaction_id\",\"type\":\"string\",\"nullable\":true,\"metadata\":{\"comment\":\"record identifier, a UUIDv7: sorted by it, rows are in the order of receipt\"}}]}",
                     *       "partition_columns": [
                     *         "received_on"
                     *       ],
                     *       "files": [
                     *         {
                     *           "file_id": "c2a1f0de-3b47-4f6e-9d1c-7e5a8b90c4d2",
                     *           "partition": {
                     *             "received_on": "2026-03-14"
                     *           },
                     *           "rows": 60512,
                     *           "bytes": 2711884,
                     *           "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["LakeFilePage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such table. Code: `lake_table_not_found`. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["LakeOff"];
            /** @description The table has changed since the first page, or the organisation was deleted. Codes: `lake_version_gone`, `organisation_deleted`. */
            410: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            501: components["responses"]["LakeNotConfigured"];
            503: components["responses"]["Unavailable"];
        };
    };
    "download-lake-file": {
        parameters: {
            query?: never;
            header?: {
                /** @description one range of bytes, such as `bytes=1000-` */
                Range?: string;
                /** @description the ETag; if the file has another, the whole file is returned */
                "If-Range"?: string;
            };
            path: {
                /** @description the name of a table */
                table: components["parameters"]["Table"];
                /** @description the `file_id` of a file */
                file_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file, with `ETag` and `Accept-Ranges`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.apache.parquet": string;
                };
            };
            /** @description The range, with `Content-Range`. */
            206: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/vnd.apache.parquet": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            /** @description There is no such file in the newest version. Codes: `lake_file_not_found`, `lake_table_not_found`. */
            404: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["LakeOff"];
            410: components["responses"]["Gone"];
            /** @description The header is not a single range of bytes within the file. Code: `range_not_satisfiable`. */
            416: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            501: components["responses"]["LakeNotConfigured"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-erasures": {
        parameters: {
            query?: {
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["RunsCursor"];
                /** @description erasures per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasurePage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "erase-people": {
        parameters: {
            query?: {
                /**
                 * @description count what would be erased; nothing is stored
                 * @example true
                 */
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    customer_ids?: string[];
                    user_ids?: string[];
                    /**
                     * @default anonymise
                     * @enum {string}
                     */
                    mode?: "anonymise" | "delete";
                } | unknown | unknown;
            };
        };
        responses: {
            /** @description The answer to a dry run: how many rows would be changed or deleted. Rejections, receipts and Idempotency-Keys are not counted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CountedErasure"];
                };
            };
            /** @description The erasure, and which of the customers are not stored. Follow it with its `erasure_id`. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestedErasure"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Too many ids are being erased. Wait for `Retry-After`. Code: `too_many_erasures`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-erasure": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the erasure */
                erasure_id: components["parameters"]["ErasureId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The erasure. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-erasure-certificate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the erasure */
                erasure_id: components["parameters"]["ErasureId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The certificate. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErasureCertificate"];
                    "text/html": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The erasure is not swept yet. Code: `erasure_not_swept`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            /** @description This process lacks a key that ids of erased people were hashed with. Code: `erasure_key_missing`. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Retry-After": components["headers"]["Retry-After"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    "lift-suppression": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the erasure */
                erasure_id: components["parameters"]["ErasureId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many ids were suppressed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        lifted: number;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description The erasure is not swept yet, or `lake` is still `pending`. Code: `erasure_not_swept`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-erasure-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: {
                            key_id: string;
                            public_key: string;
                        }[];
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-access-requests": {
        parameters: {
            query?: {
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["RunsCursor"];
                /** @description access requests per page, default 100 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessRequestPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "request-access": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    customer_ids?: string[];
                    user_ids?: string[];
                } | unknown | unknown;
            };
        };
        responses: {
            /** @description The access request. Follow it with its `access_request_id`. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessRequest"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description Too many are open or kept. Code: `too_many_access_requests`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-access-request": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the access request */
                access_request_id: components["parameters"]["AccessRequestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The access request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessRequest"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "cancel-access-request": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the access request */
                access_request_id: components["parameters"]["AccessRequestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The access request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessRequest"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "download-access-request": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the access request */
                access_request_id: components["parameters"]["AccessRequestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The records. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description Records are still being collected. Code: `access_request_not_done`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    RateLimit: components["headers"]["RateLimit"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            410: components["responses"]["Gone"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "health-live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is alive. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "ok";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "health-ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It can serve. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "ok";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            /** @description It cannot serve; the message says why. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Retry-After": components["headers"]["Retry-After"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
}
