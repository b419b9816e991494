export interface Call {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: object | undefined;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly compress?: boolean;
  readonly headers?: Record<string, string>;
  /** Lets the request outlive the page if the browser's quota allows it. */
  readonly keepalive?: boolean;
  /** Sends the request even while the connection is paused. */
  readonly urgent?: boolean;
  /** Returns the response body as a stream if it has this media type. */
  readonly stream?: string;
  /**
   * False if sending the request twice has a different effect from sending it once. Such a request is retried only if the
   * first attempt certainly had no effect.
   */
  readonly repeatable?: boolean;
  /** Whether an earlier attempt, perhaps by another process, may have been carried out. */
  readonly isSentBefore?: boolean | undefined;
  /** Called with 1 when the request may be stored, and with -1 if an answer shows that it is not. */
  readonly onOpen?: ((change: 1 | -1) => void) | undefined;
  /** Returns whether a body is a complete answer to this request. Any other body comes from something in between. */
  readonly isAnswer?: ((body: unknown) => boolean) | undefined;
  /** False if the request stores nothing, such as a dry run. */
  readonly isStoring?: boolean;
  /** If false, the first response is returned, whether it is an error or not. */
  readonly retry?: boolean;
  /** The time (ms since 1970) after which the request is not sent again. */
  readonly resendUntilMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
  /** Whether an earlier attempt may have stored what this answer reports as not stored. */
  readonly isUnknown?: boolean;
}
