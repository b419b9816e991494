import { Link } from '@tanstack/react-router';

export function OrganisationLink({ slug, children }: { readonly slug: string; readonly children: string }) {
  return (
    <Link to="/organisations/$slug" params={{ slug }}>
      {children}
    </Link>
  );
}
