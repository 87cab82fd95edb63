/** Gathers what comes one by one into pages of so many; the last one may be shorter, and none is empty. */
export async function* listPages<T>(
  items: AsyncIterable<T>,
  count: number,
): AsyncGenerator<readonly T[]> {
  let page: T[] = []
  for await (const item of items) {
    page.push(item)
    if (page.length < count) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}
