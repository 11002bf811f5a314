<?php
/**
 * Only in tests: the least that a theme is.
 */

?><!DOCTYPE html>
<html><head><?php wp_head(); ?></head><body>
<?php
while ( have_posts() ) {
	the_post();
	the_content();
}
wp_footer();
?>
</body></html>
