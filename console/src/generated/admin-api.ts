// Generated from admin-openapi.json by npm run generate. Do not edit.

export interface paths {
    "/admin/v1/organisations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List organisations
         * @description Returns a page of organisations, ordered by slug, and how much each of them has stored. Send `next_cursor` as `cursor` until it is null. With `search`, it returns only organisations whose slug or name contains the text, in upper or lower case.
         */
        get: operations["list-organisations"];
        put?: never;
        /**
         * Create an organisation
         * @description The slug identifies the organisation from then on. The name is for people; default: the slug.
         */
        post: operations["create-organisation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/organisations/{slug}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an organisation
         * @description Returns its name, whether it is suspended or deleted, the progress of its removal, its own limits, quotas and retention, and whether its report and its lake are on.
         */
        get: operations["get-organisation"];
        put?: never;
        post?: never;
        /**
         * Delete an organisation
         * @description Within 5 seconds, requests with its keys get 410 from every process. It can be restored for `DELETED_ORGANISATIONS_KEPT_DAYS`; then all its data is removed, and `removal` shows the progress. The slug can be used again when that is done. Deleting twice changes nothing.
         */
        delete: operations["delete-organisation"];
        options?: never;
        head?: never;
        /**
         * Rename, suspend, resume or limit an organisation, switch its report or its lake, or set its retention
         * @description Omitted fields do not change. A limit of null is the default of the service, and a quota of null removes the quota. Changes take effect within 5 seconds; a new or lower quota takes effect within a minute. Interactions, receipts and rejections that are older than their retention are permanently deleted within about an hour. A retention of null keeps interactions forever, and receipts and rejections for as long as the service does, which is also the maximum.
         */
        patch: operations["change-organisation"];
        trace?: never;
    };
    "/admin/v1/organisations/{slug}/lake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the progress of the lake of an organisation
         * @description Returns whether stored data is still being copied, and the age of the oldest change that is not in the lake.
         */
        get: operations["get-lake-of-organisation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/organisations/{slug}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a deleted organisation
         * @description Restores everything as it was before the deletion, including a suspension. Restoring an organisation that is not deleted changes nothing.
         */
        post: operations["restore-organisation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/organisations/{slug}/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the receipts of an organisation
         * @description Returns a page of receipts, the newest first, without the answers to single records: send `next_cursor` as `cursor` until it is null.
         */
        get: operations["list-requests-of-organisation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/organisations/{slug}/rejections/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Summarise the rejections of an organisation
         * @description Counts rejections by type, code and field, with the first and last time of each.
         */
        get: operations["summarise-rejections-of-organisation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/organisations/{slug}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show how much an organisation has stored, and its uploads by day
         * @description Counts stored records by type, whether or not there is a quota, and multiplies them with the average size of rows that it samples: like quotas, without indexes. For each of the last days, in UTC and the newest first, it returns how many uploads there were, and the outcomes of their records.
         */
        get: operations["get-usage-of-organisation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List keys
         * @description Returns a page of keys, for one organisation or for all. Send `next_cursor` as `cursor` until it is null. `expires_before` and `unused` exclude keys that are revoked or have expired.
         */
        get: operations["list-keys"];
        put?: never;
        /**
         * Issue a key
         * @description The key itself is in this answer and nowhere else: only a hash of it is stored.
         */
        post: operations["issue-key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate a key
         * @description Issues a successor with the same permissions, origins and label. The old key works for `grace_seconds` more, default one day. The successor never expires unless `expires_at` is given: the expiry of the old key is not copied.
         */
        post: operations["rotate-key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/keys/{key_id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a key
         * @description Revokes a key. Within 5 seconds, requests with the key get 401 from every process. Revoking twice changes nothing.
         */
        post: operations["revoke-key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/console-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a link to the console
         * @description The link works once. Append `path` to the address of the service and redirect the user there. Access ends when the key with this `key_id` expires or is revoked.
         */
        post: operations["issue-console-link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the audit log
         * @description Returns a page of the audit log, the newest entry first, for one organisation or for all. Send `next_cursor` as `cursor` until it is null. Entries that are added in the meantime appear when you read the first page again. An entry `console.links` counts the links that an actor has created on that day.
         */
        get: operations["list-audit-entries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/top": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the busiest organisations
         * @description Returns the busiest organisations of the last minutes, the busiest first. Each process records its 50 busiest by each measure once a minute, so the last minute may be missing.
         */
        get: operations["list-busiest-organisations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/v1/service": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * See the state of the service
         * @description Returns the running processes, when each maintenance chore last succeeded and last failed, which background work is waiting, how far ahead partitions exist, the nodes of a cluster, and for how many days the service keeps receipts, rejections and deleted organisations.
         */
        get: operations["get-service"];
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
        Organisation: {
            /** Format: uuid */
            organisation_id: string;
            slug: string;
            name: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            suspended_at: string | null;
            /** Format: date-time */
            deleted_at: string | null;
            /** @description null until the removal of a deleted organisation has begun */
            removal: components["schemas"]["Removal"] | null;
            /** @description null: the default of the service */
            requests_per_second_max: number | null;
            /** @description null: the default of the service */
            interactions_per_second_max: number | null;
            /** @description null: the default of the service */
            records_per_second_max: number | null;
            /** @description null: the default of the service */
            bytes_in_flight_max: number | null;
            /** @description whether the report on recommendations is switched on */
            recommendations_report: boolean;
            /** @description whether its interactions are also written to the lake */
            lake: boolean;
            /** @description how much may be stored; null: no quota */
            records_stored_max: number | null;
            /** @description how much may be stored; null: no quota */
            bytes_stored_max: number | null;
            /** @description how much is stored, as measured within the last minute; null without a quota, and until the first measurement */
            records_stored: number | null;
            /** @description how much is stored, as measured within the last minute; null without a quota, and until the first measurement */
            bytes_stored: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            interactions_kept_days: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            receipts_kept_days: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            rejections_kept_days: number | null;
        };
        ListedOrganisation: {
            /** Format: uuid */
            organisation_id: string;
            slug: string;
            name: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            suspended_at: string | null;
            /** Format: date-time */
            deleted_at: string | null;
            /** @description null until the removal of a deleted organisation has begun */
            removal: components["schemas"]["Removal"] | null;
            /** @description null: the default of the service */
            requests_per_second_max: number | null;
            /** @description null: the default of the service */
            interactions_per_second_max: number | null;
            /** @description null: the default of the service */
            records_per_second_max: number | null;
            /** @description null: the default of the service */
            bytes_in_flight_max: number | null;
            /** @description whether the report on recommendations is switched on */
            recommendations_report: boolean;
            /** @description whether its interactions are also written to the lake */
            lake: boolean;
            /** @description how much may be stored; null: no quota */
            records_stored_max: number | null;
            /** @description how much may be stored; null: no quota */
            bytes_stored_max: number | null;
            /** @description how much is stored, as measured within the last minute; null without a quota, and until the first measurement */
            records_stored: number | null;
            /** @description how much is stored, as measured within the last minute; null without a quota, and until the first measurement */
            bytes_stored: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            interactions_kept_days: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            receipts_kept_days: number | null;
            /** @description null: as long as the service keeps them; interactions forever */
            rejections_kept_days: number | null;
            /** @description how many records and interactions are stored */
            records: number;
            /**
             * Format: date-time
             * @description null if nothing was uploaded
             */
            last_upload_at: string | null;
        };
        LakeState: {
            /**
             * @description `waiting`: no process is writing it yet. `copying`: stored data is being copied. `following`: new data is added
             * @enum {string}
             */
            state: "off" | "waiting" | "copying" | "following";
            /**
             * Format: date-time
             * @description when it was last complete
             */
            as_of: string | null;
            /** @description the age of the oldest change that is not in it; 0 if it is complete, null until everything is copied */
            lag_seconds: number | null;
        };
        Removal: {
            /** Format: date-time */
            started_at: string;
            /** @description the current table */
            table: string | null;
            /** @description rows removed so far, from all tables */
            rows: number;
        };
        OrganisationPage: {
            organisations: components["schemas"]["ListedOrganisation"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        Key: {
            key_id: string;
            organisation: string;
            permissions: string[];
            /** @description whether it only records interactions, from pages of `origins` */
            browser: boolean;
            /** @description empty unless `browser` */
            origins: string[];
            /** @description whether it belongs to a link to the console and cannot be sent */
            link: boolean;
            label: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string;
            /**
             * Format: date-time
             * @description to the minute
             */
            last_used_at: string | null;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            revoked_at: string | null;
            successor_of: string | null;
        };
        IssuedKey: {
            key_id: string;
            organisation: string;
            permissions: string[];
            /** @description whether it only records interactions, from pages of `origins` */
            browser: boolean;
            /** @description empty unless `browser` */
            origins: string[];
            /** @description whether it belongs to a link to the console and cannot be sent */
            link: boolean;
            label: string | null;
            /** Format: date-time */
            created_at: string;
            created_by: string;
            /**
             * Format: date-time
             * @description to the minute
             */
            last_used_at: string | null;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            revoked_at: string | null;
            successor_of: string | null;
            /** @description shown only once */
            key: string;
        };
        KeyPage: {
            keys: components["schemas"]["Key"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        ConsoleLink: {
            /** @description append it to the address of the service; shown only once */
            path: string;
            key_id: string;
            /** Format: date-time */
            expires_at: string;
        };
        AuditEntry: {
            audit_id: string;
            /** Format: date-time */
            at: string;
            /** @description `token:` and the name of an admin token, `cli:` and the user that ran a command, or `maintenance`, which removes organisations */
            actor: string;
            /** @description such as `key.issue` */
            act: string;
            organisation: string | null;
            key_id: string | null;
            /** @description the request to the admin API, if it was one */
            request_id: string | null;
            details: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description when the entry was imported after a restore; null for all others
             */
            imported_at: string | null;
        };
        AuditPage: {
            entries: components["schemas"]["AuditEntry"][];
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
        ReceiptPage: {
            requests: components["schemas"]["ReceiptSummary"][];
            /** @description null on the last page */
            next_cursor: string | null;
        };
        RejectionCounts: {
            rejections: {
                type: components["schemas"]["RecordType"];
                code: components["schemas"]["ProblemCode"];
                field: string | null;
                count: number;
                /** Format: date-time */
                first_seen: string;
                /** Format: date-time */
                last_seen: string;
            }[];
        };
        Usage: {
            types: {
                /** @description a record type, `interactions`, or `access-requests` for what they collected */
                type: string;
                records: number;
                /** @description estimated */
                bytes: number;
            }[];
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
        BusiestOrganisations: {
            /** Format: date-time */
            from: string;
            /** Format: date-time */
            to: string;
            organisations: {
                /** Format: uuid */
                organisation_id: string;
                /** @description null if the organisation is gone */
                slug: string | null;
                name: string | null;
                requests: number;
                records: number;
                interactions: number;
                bytes: number;
                rejections: number;
                limits_hit: number;
            }[];
        };
        Service: {
            processes: {
                /** Format: uuid */
                process_id: string;
                host: string;
                version: string;
                /** Format: date-time */
                started_at: string;
                /**
                 * Format: date-time
                 * @description updated once a minute; a killed process is listed for an hour
                 */
                seen_at: string;
                /** @description whether it runs maintenance */
                is_leader: boolean;
            }[];
            maintenance: {
                chore: string;
                /** Format: date-time */
                ran_at: string | null;
                /** Format: date-time */
                failed_at: string | null;
            }[];
            waiting: {
                /** @description such as `erasures` */
                work: string;
                count: number;
                /** @description the age of the oldest; 0 if nothing waits */
                oldest_seconds: number;
            }[];
            partitions: {
                table: string;
                count: number;
                /**
                 * Format: date-time
                 * @description later rows would find no partition; maintenance adds them ahead
                 */
                ends_at: string;
            }[];
            nodes: {
                name: string;
                port: number;
                is_active: boolean;
            }[] | null;
            /** @description `RECEIPTS_KEPT_DAYS` of the process that answers */
            receipts_kept_days: number;
            /** @description `DELETED_ORGANISATIONS_KEPT_DAYS` of the process that answers */
            deleted_organisations_kept_days: number;
        };
        Error: {
            /** @description the name of the status */
            error: string;
            /**
             * @description for programs; the list of errors explains what to do about each
             * @enum {string}
             */
            code: "malformed_request" | "malformed_json" | "malformed_utf8" | "malformed_encoding" | "nested_too_deeply" | "invalid_request" | "admin_unauthorized" | "https_required" | "read_only_token" | "not_found" | "organisation_not_found" | "key_not_found" | "method_not_allowed" | "timed_out" | "slug_taken" | "organisation_is_deleted" | "removal_begun" | "body_too_large" | "unsupported_media_type" | "unsupported_encoding" | "expectation_failed" | "too_many_failed_keys" | "too_many_requests" | "headers_too_large" | "internal" | "database_unavailable" | "schema_behind" | "schema_ahead" | "stalled" | "overloaded" | "shutting_down";
            /** @description for people: what is wrong, then what to do */
            message: string;
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
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The API key or the admin token is missing or invalid. Codes: `admin_unauthorized`. */
        Unauthorized: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The key does not allow this or this origin, its organisation is suspended or has used up its quota, or HTTPS was not used. Codes: `https_required`, `read_only_token`. */
        Forbidden: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
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
        /** @description The body is too large, as sent or once decompressed; split it. Codes: `body_too_large`. */
        ContentTooLarge: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
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
        /** @description Something went wrong on our side; send the request again. Codes: `internal`. */
        InternalError: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The service is not available at the moment; send the request again. Codes: `database_unavailable`, `schema_behind`, `schema_ahead`, `stalled`, `overloaded`, `shutting_down`. */
        Unavailable: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description There is nothing with this id. */
        NotFound: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The organisation is deleted. Code: `organisation_is_deleted`. */
        OrganisationIsDeleted: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description the slug of the organisation */
        Slug: string;
        /** @description entries per page, default 100 */
        Limit: number;
        /** @description the `next_cursor` of the previous page */
        Cursor: string;
        /** @description the id of the key, which is also its second part */
        KeyId: string;
        /** @description its slug */
        Organisation: string;
    };
    requestBodies: never;
    headers: {
        /** @description identifies this request */
        "X-Request-Id": string;
        /** @description seconds to wait before sending the request again */
        "Retry-After": number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "list-organisations": {
        parameters: {
            query?: {
                /** @description only entries with this `search` */
                search?: string;
                /** @description entries per page, default 100 */
                limit?: components["parameters"]["Limit"];
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["Cursor"];
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
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisations": [
                     *         {
                     *           "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "slug": "acme",
                     *           "name": "Acme Student Discounts",
                     *           "created_at": "2026-03-14T09:26:53.035Z",
                     *           "suspended_at": null,
                     *           "deleted_at": null,
                     *           "removal": null,
                     *           "requests_per_second_max": null,
                     *           "interactions_per_second_max": null,
                     *           "records_per_second_max": 100000,
                     *           "bytes_in_flight_max": null,
                     *           "recommendations_report": false,
                     *           "lake": false,
                     *           "interactions_kept_days": 90,
                     *           "receipts_kept_days": null,
                     *           "rejections_kept_days": null,
                     *           "records_stored_max": 50000000,
                     *           "bytes_stored_max": null,
                     *           "records_stored": 1204551,
                     *           "bytes_stored": null,
                     *           "records": 1204551,
                     *           "last_upload_at": "2026-03-14T09:26:53.035Z"
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["OrganisationPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "create-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    slug: string;
                    name?: string;
                };
            };
        };
        responses: {
            /** @description The organisation. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "slug": "acme",
                     *       "name": "Acme Student Discounts",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "removal": null,
                     *       "requests_per_second_max": null,
                     *       "interactions_per_second_max": null,
                     *       "records_per_second_max": 100000,
                     *       "bytes_in_flight_max": null,
                     *       "recommendations_report": false,
                     *       "lake": false,
                     *       "interactions_kept_days": 90,
                     *       "receipts_kept_days": null,
                     *       "rejections_kept_days": null,
                     *       "records_stored_max": 50000000,
                     *       "bytes_stored_max": null,
                     *       "records_stored": 1204551,
                     *       "bytes_stored": null
                     *     }
                     */
                    "application/json": components["schemas"]["Organisation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            /** @description The slug is taken. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The organisation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "slug": "acme",
                     *       "name": "Acme Student Discounts",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "removal": null,
                     *       "requests_per_second_max": null,
                     *       "interactions_per_second_max": null,
                     *       "records_per_second_max": 100000,
                     *       "bytes_in_flight_max": null,
                     *       "recommendations_report": false,
                     *       "lake": false,
                     *       "interactions_kept_days": 90,
                     *       "receipts_kept_days": null,
                     *       "rejections_kept_days": null,
                     *       "records_stored_max": 50000000,
                     *       "bytes_stored_max": null,
                     *       "records_stored": 1204551,
                     *       "bytes_stored": null
                     *     }
                     */
                    "application/json": components["schemas"]["Organisation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "delete-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current organisation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "slug": "acme",
                     *       "name": "Acme Student Discounts",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "suspended_at": null,
                     *       "deleted_at": "2026-03-14T10:00:00.000Z",
                     *       "removal": null,
                     *       "requests_per_second_max": null,
                     *       "interactions_per_second_max": null,
                     *       "records_per_second_max": 100000,
                     *       "bytes_in_flight_max": null,
                     *       "recommendations_report": false,
                     *       "lake": false,
                     *       "interactions_kept_days": 90,
                     *       "receipts_kept_days": null,
                     *       "rejections_kept_days": null,
                     *       "records_stored_max": 50000000,
                     *       "bytes_stored_max": null,
                     *       "records_stored": 1204551,
                     *       "bytes_stored": null
                     *     }
                     */
                    "application/json": components["schemas"]["Organisation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "change-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    name?: string;
                    /** @description true: requests with its keys get 403 */
                    suspended?: boolean;
                    requests_per_second_max?: number | null;
                    interactions_per_second_max?: number | null;
                    records_per_second_max?: number | null;
                    bytes_in_flight_max?: number | null;
                    records_stored_max?: number | null;
                    bytes_stored_max?: number | null;
                    /** @description true: the report on recommendations is counted and can be read; it is false by default */
                    recommendations_report?: boolean;
                    /** @description true: its data is also written to the lake; false, the default: it is not, and files that were written are deleted */
                    lake?: boolean;
                    interactions_kept_days?: number | null;
                    receipts_kept_days?: number | null;
                    rejections_kept_days?: number | null;
                };
            };
        };
        responses: {
            /** @description The current organisation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "slug": "acme",
                     *       "name": "Acme Student Discounts",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "removal": null,
                     *       "requests_per_second_max": null,
                     *       "interactions_per_second_max": null,
                     *       "records_per_second_max": 100000,
                     *       "bytes_in_flight_max": null,
                     *       "recommendations_report": false,
                     *       "lake": false,
                     *       "interactions_kept_days": 90,
                     *       "receipts_kept_days": null,
                     *       "rejections_kept_days": null,
                     *       "records_stored_max": 50000000,
                     *       "bytes_stored_max": null,
                     *       "records_stored": 1204551,
                     *       "bytes_stored": null
                     *     }
                     */
                    "application/json": components["schemas"]["Organisation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["OrganisationIsDeleted"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-lake-of-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the lake. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "state": "following",
                     *       "as_of": "2026-03-14T09:26:53.035Z",
                     *       "lag_seconds": 34
                     *     }
                     */
                    "application/json": components["schemas"]["LakeState"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "restore-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current organisation. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *       "slug": "acme",
                     *       "name": "Acme Student Discounts",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "suspended_at": null,
                     *       "deleted_at": null,
                     *       "removal": null,
                     *       "requests_per_second_max": null,
                     *       "interactions_per_second_max": null,
                     *       "records_per_second_max": 100000,
                     *       "bytes_in_flight_max": null,
                     *       "recommendations_report": false,
                     *       "lake": false,
                     *       "interactions_kept_days": 90,
                     *       "receipts_kept_days": null,
                     *       "rejections_kept_days": null,
                     *       "records_stored_max": 50000000,
                     *       "bytes_stored_max": null,
                     *       "records_stored": 1204551,
                     *       "bytes_stored": null
                     *     }
                     */
                    "application/json": components["schemas"]["Organisation"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            /** @description Its removal has begun. Code: `removal_begun`. */
            409: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-requests-of-organisation": {
        parameters: {
            query?: {
                /** @description only entries with this `type` */
                type?: "customers" | "transactions" | "offers" | "shops" | "branches" | "categories" | "shop-categories" | "institutes" | "courses" | "tags" | "shop-tags" | "keywords" | "shop-keywords" | "student-favourites" | "interactions";
                /** @description only receipts with this status */
                status?: "200" | "207" | "400";
                /** @description only entries with this `idempotency_key` */
                idempotency_key?: string;
                /** @description only receipts of this run */
                run_id?: string;
                /** @description only what was received at this time or later */
                from?: string;
                /** @description only what was received before this time */
                to?: string;
                /** @description the `next_cursor` of the previous page */
                cursor?: string;
                /** @description receipts per page, default 20 */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
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
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "summarise-rejections-of-organisation": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The most frequent first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "rejections": [
                     *         {
                     *           "type": "transactions",
                     *           "code": "reference_not_found",
                     *           "field": "shop_id",
                     *           "count": 12,
                     *           "first_seen": "2026-03-14T09:26:53.035Z",
                     *           "last_seen": "2026-03-14T09:30:12.801Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RejectionCounts"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-usage-of-organisation": {
        parameters: {
            query?: {
                /** @description how many, default 14 */
                days?: number;
            };
            header?: never;
            path: {
                /** @description the slug of the organisation */
                slug: components["parameters"]["Slug"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The largest type first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "types": [
                     *         {
                     *           "type": "transactions",
                     *           "records": 1204551,
                     *           "bytes": 385456320
                     *         },
                     *         {
                     *           "type": "shops",
                     *           "records": 512,
                     *           "bytes": 106496
                     *         }
                     *       ],
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
                    "application/json": components["schemas"]["Usage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-keys": {
        parameters: {
            query?: {
                /** @description its slug */
                organisation?: components["parameters"]["Organisation"];
                /** @description only keys that expire before then */
                expires_before?: string;
                /** @description `true`: only keys that were never used */
                unused?: boolean;
                /** @description entries per page, default 100 */
                limit?: components["parameters"]["Limit"];
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["Cursor"];
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
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "keys": [
                     *         {
                     *           "key_id": "7dQk2LrX9Ab",
                     *           "organisation": "acme",
                     *           "permissions": [
                     *             "data:write",
                     *             "data:read"
                     *           ],
                     *           "browser": false,
                     *           "origins": [],
                     *           "link": false,
                     *           "label": "nightly export",
                     *           "created_at": "2026-03-14T09:26:53.035Z",
                     *           "created_by": "token:deploy",
                     *           "last_used_at": null,
                     *           "expires_at": null,
                     *           "revoked_at": null,
                     *           "successor_of": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["KeyPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "issue-key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description its slug */
                    organisation: string;
                    /** @description default: data:write, data:read, interactions:write, interactions:read; of a browser key: interactions:write */
                    permissions?: ("data:write" | "data:read" | "interactions:write" | "interactions:read" | "data:write:customers" | "data:write:transactions" | "data:write:offers" | "data:write:shops" | "data:write:branches" | "data:write:categories" | "data:write:shop-categories" | "data:write:institutes" | "data:write:courses" | "data:write:tags" | "data:write:shop-tags" | "data:write:keywords" | "data:write:shop-keywords" | "data:write:student-favourites" | "data:erase" | "data:access")[];
                    /** @description whether it is a browser key, which only records interactions, and only from `origins` */
                    browser?: boolean;
                    /** @description with `browser`: the origins of the pages that may use the key */
                    origins?: string[];
                    label?: string;
                    /**
                     * Format: date-time
                     * @description when the key expires; default never
                     */
                    expires_at?: string;
                };
            };
        };
        responses: {
            /** @description The key, which is shown only once, and its details. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "organisation": "acme",
                     *       "permissions": [
                     *         "data:write",
                     *         "data:read"
                     *       ],
                     *       "browser": false,
                     *       "origins": [],
                     *       "link": false,
                     *       "label": "nightly export",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "created_by": "token:deploy",
                     *       "last_used_at": null,
                     *       "expires_at": null,
                     *       "revoked_at": null,
                     *       "successor_of": null,
                     *       "key": "intake_7dQk2LrX9Ab_…"
                     *     }
                     */
                    "application/json": components["schemas"]["IssuedKey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["OrganisationIsDeleted"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "rotate-key": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the key, which is also its second part */
                key_id: components["parameters"]["KeyId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    grace_seconds?: number;
                    /**
                     * Format: date-time
                     * @description when the successor expires; default never
                     */
                    expires_at?: string;
                };
            };
        };
        responses: {
            /** @description The key, which is shown only once, and its details. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "organisation": "acme",
                     *       "permissions": [
                     *         "data:write",
                     *         "data:read"
                     *       ],
                     *       "browser": false,
                     *       "origins": [],
                     *       "link": false,
                     *       "label": "nightly export",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "created_by": "token:deploy",
                     *       "last_used_at": null,
                     *       "expires_at": null,
                     *       "revoked_at": null,
                     *       "successor_of": null,
                     *       "key": "intake_7dQk2LrX9Ab_…"
                     *     }
                     */
                    "application/json": components["schemas"]["IssuedKey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["OrganisationIsDeleted"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "revoke-key": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description the id of the key, which is also its second part */
                key_id: components["parameters"]["KeyId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The current key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "organisation": "acme",
                     *       "permissions": [
                     *         "data:write",
                     *         "data:read"
                     *       ],
                     *       "browser": false,
                     *       "origins": [],
                     *       "link": false,
                     *       "label": "nightly export",
                     *       "created_at": "2026-03-14T09:26:53.035Z",
                     *       "created_by": "token:deploy",
                     *       "last_used_at": null,
                     *       "expires_at": null,
                     *       "revoked_at": "2026-03-14T10:00:00.000Z",
                     *       "successor_of": null
                     *     }
                     */
                    "application/json": components["schemas"]["Key"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "issue-console-link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description its slug */
                    organisation: string;
                    /** @description whether the link gives read-only access */
                    read_only?: boolean;
                    /**
                     * Format: date-time
                     * @description when the link and its session end; default in an hour
                     */
                    expires_at?: string;
                };
            };
        };
        responses: {
            /** @description The link. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "path": "/console/sign-in#…",
                     *       "key_id": "7dQk2LrX9Ab",
                     *       "expires_at": "2026-03-14T10:26:53.035Z"
                     *     }
                     */
                    "application/json": components["schemas"]["ConsoleLink"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["OrganisationIsDeleted"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-audit-entries": {
        parameters: {
            query?: {
                /** @description its slug */
                organisation?: components["parameters"]["Organisation"];
                /** @description such as `token:deploy` */
                actor?: string;
                /** @description such as `key.issue`, or `key` for all of them */
                action?: string;
                /** @description only entries from then on */
                since?: string;
                /** @description only entries before then */
                until?: string;
                /** @description entries per page, default 100 */
                limit?: components["parameters"]["Limit"];
                /** @description the `next_cursor` of the previous page */
                cursor?: components["parameters"]["Cursor"];
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
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "entries": [
                     *         {
                     *           "audit_id": "42",
                     *           "at": "2026-03-14T09:26:53.035Z",
                     *           "actor": "token:deploy",
                     *           "act": "key.issue",
                     *           "organisation": "acme",
                     *           "key_id": "7dQk2LrX9Ab",
                     *           "request_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "details": {
                     *             "permissions": [
                     *               "data:write",
                     *               "data:read"
                     *             ],
                     *             "label": "nightly export",
                     *             "expires_at": null
                     *           },
                     *           "imported_at": null
                     *         }
                     *       ],
                     *       "next_cursor": null
                     *     }
                     */
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "list-busiest-organisations": {
        parameters: {
            query?: {
                /** @description the measure to compare, default requests */
                by?: "requests" | "records" | "interactions" | "bytes" | "rejections" | "limits_hit";
                /** @description how many, default 5 */
                minutes?: number;
                /** @description how many, default 20 */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The busiest. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "from": "2026-03-14T09:21:53.035Z",
                     *       "to": "2026-03-14T09:26:53.035Z",
                     *       "organisations": [
                     *         {
                     *           "organisation_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "slug": "acme",
                     *           "name": "Acme Student Discounts",
                     *           "requests": 214,
                     *           "records": 1000000,
                     *           "interactions": 14,
                     *           "bytes": 412000000,
                     *           "rejections": 12,
                     *           "limits_hit": 0
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["BusiestOrganisations"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            417: components["responses"]["ExpectationFailed"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["HeadersTooLarge"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    "get-service": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state in the last minute. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "processes": [
                     *         {
                     *           "process_id": "019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f",
                     *           "host": "intake-1",
                     *           "version": "0.2.0+49dec8a12345",
                     *           "started_at": "2026-03-13T07:00:00.000Z",
                     *           "seen_at": "2026-03-14T09:26:53.035Z",
                     *           "is_leader": true
                     *         }
                     *       ],
                     *       "maintenance": [
                     *         {
                     *           "chore": "make partitions",
                     *           "ran_at": "2026-03-14T09:00:01.412Z",
                     *           "failed_at": null
                     *         }
                     *       ],
                     *       "waiting": [
                     *         {
                     *           "work": "erasures",
                     *           "count": 1,
                     *           "oldest_seconds": 4.2
                     *         }
                     *       ],
                     *       "partitions": [
                     *         {
                     *           "table": "interactions",
                     *           "count": 12,
                     *           "ends_at": "2026-03-22T00:00:00.000Z"
                     *         }
                     *       ],
                     *       "nodes": null,
                     *       "receipts_kept_days": 30,
                     *       "deleted_organisations_kept_days": 30
                     *     }
                     */
                    "application/json": components["schemas"]["Service"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
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
