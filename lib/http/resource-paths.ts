/** Spells the paths of resources as `http.trailingSlash` says: both spellings appear in the specification (4). */
export class ResourcePaths {
  constructor(private readonly trailingSlash: boolean) {}

  of(path: string): string {
    return this.trailingSlash ? `${path}/` : path;
  }
}
