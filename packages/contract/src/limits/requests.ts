/** Bounds on a request as it arrives: its body, headers and time. */
export const requestLimits = {
  /** Largest JSON request body in bytes (the public clients check the same 5 MiB). */
  bodyBytesMax: 5 * 1024 * 1024,
  /**
   * Chunks of a body (or of an answer that the service asks for), and the bytes for which it may have one more. So a
   * store may send each of its records by itself, however short they are.
   */
  bodyPartsMax: 10_000,
  bytesOfPartMin: 64,
  /** Largest body of an endpoint that takes no records. */
  plainBodyBytesMax: 512 * 1024,
  /**
   * Bytes of a body that are read at once; longer bodies are read in slices of so many characters, and other
   * requests get turns in between.
   */
  bodyBytesAtOnce: 64 * 1024,
  /** Members of one object of a body, and items of one list, which grows in one piece of memory. */
  objectMembersMax: 10_000,
  bodyListItemsMax: 262_144,
  /**
   * Values of a whole body, of which a list or an object counts as two: while millions of them are made, and their
   * memory is collected, everything else waits. And characters of one text, which is read at once: a quarter more than
   * a record may have, so that the message about a record that is a little too large names it. And blanks between two
   * values, which become a part of what is parsed at once.
   */
  bodyValuesMax: 1_000_000,
  bodyTextCharsMax: 1280 * 1024,
  bodyBlanksMax: 64 * 1024,
  /** Nesting of a whole request body, whatever it is. */
  bodyDepthMax: 128,
  /** Nesting of a record within its request, and of conditions. */
  jsonDepthMax: 64,
  /** Address and headers of a request together; a payment header of the largest size fits. */
  headerBytesMax: 32 * 1024,
  /** Requests that wait behind another one on its connection (pipelining); one more closes the connection. */
  requestsBehindMax: 64,
  /** Longest time for a request to arrive, headers and body together. */
  requestTimeoutMs: 30_000,
  /**
   * Bytes of all large bodies of callers without a key together, from their arrival to their answer; one address has a
   * quarter of them at most.
   */
  incomingBytesMax: 256 * 1024 * 1024,
  /**
   * Least pause before a refusal of too much, or of a long body, is sent (twice that at most); and such refusals that
   * wait at once.
   */
  refusalPauseMs: 250,
  refusalsWaitingMax: 1_000,
} as const
