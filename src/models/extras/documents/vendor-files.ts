/** A file as a vendor keeps it. */
export interface VendorFile {
  id: string;
  filename: string;
  bytes: number;
  /** Epoch seconds. */
  createdAt: number;
  /** In the vendor's words: `ok`, `ready`, `error` … */
  status: string;
}

/** A vendor's store of files. All of it throws an `AppError`. */
export interface VendorFiles {
  /** Bytes of one file at the most. */
  maxBytes: number;
  upload(file: { name: string; bytes: Uint8Array }, signal: AbortSignal): Promise<VendorFile>;
  list(signal: AbortSignal): Promise<VendorFile[]>;
  /** False when there is no such file. */
  remove(id: string, signal: AbortSignal): Promise<boolean>;
}

/** One that also reads what it keeps. */
export interface ReadingVendorFiles extends VendorFiles {
  /** The text of a file; undefined when there is no such file. */
  content(id: string, signal: AbortSignal): Promise<string | undefined>;
}
