/** Bounds on blobs, their uploads and downloads. */
export const blobLimits = {
  /** Largest blob in bytes where the operator sets nothing else; the public clients expect 2 MiB. */
  blobBytesMax: 2 * 1024 * 1024,
  /** Bytes of the `metadata` of a blob, and of all else in a form beside the blob. */
  blobMetadataBytesMax: 64 * 1024,
  blobFormBytesMax: 256 * 1024,
  /** Characters of a blob's file name. */
  filenameCharsMax: 255,
  /** Uploads that one process takes at once, and of one application. */
  uploadsMax: 64,
  uploadsOfApplicationMax: 16,
  /** Bounds on an upload: patience beside the time that its bytes need at the lowest rate. */
  upload: { patienceMs: 30_000, bytesPerSecondMin: 16 * 1024 },
  /** Resumable uploads that are open, and those of one application; the time after which nothing came for one. */
  openUploadsMax: 256,
  openUploadsOfApplicationMax: 32,
  openUploadMs: 24 * 3600 * 1000,
  /** Resumable uploads that have ended and whose ends are remembered, and those of one application. */
  endedUploadsMax: 8192,
  endedUploadsOfApplicationMax: 1024,
  /** Files that are read at once, and by one address. */
  downloadsMax: 512,
  downloadsOfAddressMax: 64,
} as const
