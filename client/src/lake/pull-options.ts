export interface PullOptions {
  /** Called as bytes arrive. */
  readonly onProgress?: (progress: PullProgress) => void;
  readonly signal?: AbortSignal;
}

/** The size of this pull's downloads for a table, and how much has arrived. */
export interface PullProgress {
  readonly table: string;
  readonly files: number;
  readonly filesDone: number;
  readonly bytes: number;
  readonly bytesDone: number;
  /** The number of rows in the completed files. */
  readonly rowsDone: number;
}

/** A table that has been brought up to date with the server. */
export interface PulledTable {
  readonly table: string;
  /** The table's version on the server. */
  readonly version: number;
  /** The table contains everything stored before this time; null if unknown. */
  readonly as_of: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly files: number;
  /** How many files this pull downloaded. */
  readonly filesDownloaded: number;
  /** How many files this pull removed. */
  readonly filesRemoved: number;
}
